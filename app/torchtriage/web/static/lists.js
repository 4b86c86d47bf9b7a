// What script adds to lists: suggestions with counts, a key that selects, and rows that come while one looks.

// Suggestions: fetched when a filter is first touched, from what is stored.
const form = document.querySelector("form.filters.many");
const suggest = async () => {
  const answer = await fetch(`/incidents/values.json${location.search}`);
  if (!answer.ok) return;
  for (const [name, values] of Object.entries(await answer.json())) {
    const list = document.getElementById(`v-${name}`);
    if (list) {
      list.replaceChildren(...values.map(([value, text, count]) => {
        const option = document.createElement("option");
        option.value = value;
        option.label = text === value ? `${value} (${count})` : `${text} (${count})`;
        return option;
      }));
      continue;
    }
    const counts = new Map(values.map(([value, , count]) => [value, count]));
    for (const option of form.elements[name]?.options ?? []) {
      if (counts.has(option.value)) option.text = `${option.text} (${counts.get(option.value)})`;
    }
  }
};
form?.addEventListener("focusin", suggest, { once: true });

// `x` selects the row that has the focus.
document.addEventListener("keydown", (event) => {
  if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select")) return;
  const box = event.target.closest?.(".row, .group")?.querySelector("input.pick");
  if (box) { box.checked = !box.checked; box.dispatchEvent(new Event("change")); }
});

// Rows that come while one looks: what is there already changes in its place; what is new is told, and shown when asked
// for, so that nothing moves under the pointer.
const EVERY = 15_000;
const note = document.querySelector(".fresh-rows");
const rows = () => document.querySelector(".bulk .rows");
const latest = async () => {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
};
const refresh = async () => {
  const page = await latest();
  const theirs = page?.querySelector(".bulk .rows");
  if (!theirs) return;
  let fresh = 0;
  for (const row of theirs.children) {
    const mine = rows().querySelector(`:scope > [data-id="${row.dataset.id}"]`);
    if (!mine) { fresh += 1; continue; }
    if (mine.contains(document.activeElement) || mine.querySelector(".pick:checked")) continue;
    for (const part of [".what", ".when"]) {
      const [old, now] = [mine.querySelector(part), row.querySelector(part)];
      if (old.textContent !== now.textContent) old.replaceWith(now.cloneNode(true));
    }
  }
  document.dispatchEvent(new Event("fresh"));
  const first = rows().firstElementChild?.dataset.id;
  const newer = [...theirs.children].findIndex((row) => row.dataset.id === first);
  fresh = newer < 0 ? fresh : newer; // those that stand above the first of mine
  if (!fresh) return;
  const show = document.createElement("button");
  show.type = "button";
  show.textContent = note.dataset.fresh.replace("{count}", fresh);
  show.addEventListener("click", () => location.reload());
  if (note.textContent !== show.textContent) note.replaceChildren(show);
  note.hidden = false;
};
if (note && rows() && !new URLSearchParams(location.search).has("cursor")) {
  const again = () => setTimeout(async () => {
    if (document.visibilityState === "visible") await refresh().catch(() => {}); // no answer: next time
    again();
  }, EVERY);
  again();
}
