// The form of a draft: problems while one types, values of the log put in by a click, and nothing typed is lost.
const form = document.querySelector("form#draft");
const would = document.querySelector("#would");
const kept = `draft ${form.dataset.kept} ${form.dataset.revision}`;
const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea, select")];
const values = () => Object.fromEntries(fields.map((field) => [field.name, field.value]));

// Problems, as the server says them.
const asBody = (typed) => {
  const steps = [1, 2, 3].map((n) => ({ en: typed[`step${n}_en`], zh: typed[`step${n}_zh`], run: typed[`step${n}_run`] }));
  const others = Object.entries(typed).filter(([name]) => !/^step\d_/.test(name));
  return JSON.stringify({ ...Object.fromEntries(others), steps });
};
const paragraph = (text, kind) => Object.assign(document.createElement("p"), { textContent: text, className: kind });
const more = document.querySelector("#more-slots");
const sort = (known) => { // what the example shows stands first, what only the log does is folded
  const rows = [...form.querySelectorAll(".slots > div")];
  const [first, folded] = form.querySelectorAll(".slots");
  for (const row of rows) {
    const absent = known.length > 0 && !known.includes(row.querySelector("[data-slot]").dataset.slot);
    row.classList.toggle("absent", absent);
    (absent ? folded : first).append(row);
  }
  if (more) more.hidden = !more.querySelector(".slots > div");
};
const mainIs = (value) => {
  for (const button of form.querySelectorAll(".last [name=action]")) button.classList.toggle("main", button.value === value);
};
// Before anything was changed, nobody has done anything wrong yet: `first` marks no problem.
const show = ({ problems, says, steps, known }, first) => {
  sort(known);
  for (const field of fields) {
    const own = first ? [] : problems.filter((problem) => problem.field === field.name);
    field.toggleAttribute("aria-invalid", false);
    if (own.some((problem) => !problem.warning)) field.setAttribute("aria-invalid", "true");
    form.querySelector(`[data-wrong="${field.name}"]`).replaceChildren(...own.map((problem) =>
      Object.assign(document.createElement("li"), { textContent: problem.message, className: problem.warning ? "warns" : "" })));
  }
  const count = problems.filter((problem) => !problem.warning).length;
  mainIs(count ? "check" : "save");
  const parts = [paragraph(first && count ? would.dataset.first : count ? would.dataset.wrong.replace("#", count) : would.dataset.sound, "count")];
  if (!says) {
    if (!first) parts.push(paragraph(would.dataset.none, "quiet"));
  } else {
    parts.push(paragraph(says.en, "prose"), says.zh ? paragraph(says.zh, "prose") : paragraph(would.dataset.zh, "quiet"));
    const list = document.createElement("ol");
    const zh = document.documentElement.lang.startsWith("zh");
    list.append(...steps.map((step) => Object.assign(document.createElement("li"), { textContent: (zh && step.zh) || step.en })));
    parts.push(list);
  }
  would.replaceChildren(...parts);
};
let asked = 0;
const check = async (first = false) => {
  const mine = (asked += 1);
  would.querySelector(".count").textContent = would.dataset.asking;
  const answer = await fetch(form.dataset.check, { method: "POST", headers: { "Content-Type": "application/json" }, body: asBody(values()) })
    .then((got) => (got.ok ? got.json() : null), () => null);
  if (mine !== asked) return;
  if (answer) show(answer, first);
  else would.querySelector(".count").textContent = "";
};
let waiting;
const changed = () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => check(), 500);
  localStorage.setItem(kept, JSON.stringify(values()));
  saveFirst();
};
// What is approved is what is saved.
const saveFirst = () => {
  for (const button of document.querySelectorAll(".stages button")) button.disabled = true;
  document.querySelector("#save-first")?.removeAttribute("hidden");
};
form.addEventListener("input", changed);
form.addEventListener("change", changed);

// What was typed and not saved is there again after a login, a crash or a wrong click.
const restore = document.querySelector("#restore");
const before = values();
const typed = JSON.parse(localStorage.getItem(kept) ?? "null");
const fill = (given) => { for (const field of fields) if (field.name in given) field.value = given[field.name]; };
if (typed && fields.some((field) => field.name in typed && typed[field.name] !== field.value) && !document.querySelector("main [role=alert]")) {
  fill(typed);
  restore.hidden = false;
  saveFirst();
}
document.querySelector("#forget")?.addEventListener("click", () => {
  localStorage.removeItem(kept);
  fill(before);
  restore.hidden = true;
  check();
});
form.addEventListener("submit", (event) => {
  if (event.submitter?.value !== "save") return;
  // Kept until the page that says it is saved: the next revision has a key of its own.
  sessionStorage.setItem("saved draft", kept);
});
const last = sessionStorage.getItem("saved draft");
if (last && last !== kept && !document.querySelector("main [role=alert]")) {
  localStorage.removeItem(last);
  sessionStorage.removeItem("saved draft");
}
if (!form.querySelector("fieldset").disabled && (!("checked" in form.dataset) || !restore.hidden)) check(restore.hidden);

// To track or approve takes seconds; a case's entry is proved before, as the server will do then.
const state = document.querySelector("form#state");
const whole = document.querySelector("#whole");
const moving = (are) => { for (const button of state.querySelectorAll("[value=track], [value=approve]")) button.disabled = are; };
state?.addEventListener("submit", () => {
  const working = document.querySelector("#working");
  working.textContent = state.dataset.working;
  working.hidden = false;
  setTimeout(() => { for (const button of state.querySelectorAll("button")) button.disabled = true; }); // once it is sent
});
if (state?.dataset.whole && restore.hidden) {
  const could = [...state.querySelectorAll("[value=track], [value=approve]")].filter((button) => !button.disabled);
  moving(true);
  whole.textContent = whole.dataset.asking;
  fetch(state.dataset.whole, { method: "POST", headers: { "Content-Type": "application/json" }, body: asBody(values()) })
    .then((got) => (got.ok ? got.json() : null), () => null)
    .then((answer) => {
      const wrong = answer?.problems.filter((problem) => !problem.warning) ?? [];
      whole.textContent = wrong.length ? `${whole.dataset.wrong} ${wrong[0].message}` : answer ? whole.dataset.sound : "";
      whole.classList.toggle("problem", wrong.length > 0);
      if (!wrong.length && document.querySelector("#save-first").hidden) for (const button of could) button.disabled = false;
    });
}

// A click puts what the log tells into the sentence where one writes.
let writing = form.querySelector("#d-says_en");
form.addEventListener("focusin", (event) => { if (/^(says|step\d|title)/.test(event.target.name ?? "")) writing = event.target; });
form.addEventListener("click", (event) => {
  const slot = event.target.closest("[data-slot]")?.dataset.slot;
  if (!slot || form.querySelector("fieldset").disabled) return;
  writing.setRangeText(`{${slot}}`, writing.selectionStart, writing.selectionEnd, "end");
  writing.focus();
  changed();
});
