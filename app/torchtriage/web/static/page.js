// What script adds to every page that works without it: copying, local times, keys.

// Everything under `root` that needs script: called for the page, and for what a script puts into it later.
const prepare = (root) => {
  for (const time of root.querySelectorAll("time[data-ago]:not([data-told])")) {
    local(time);
    time.dataset.told = "";
  }
  for (const time of root.querySelectorAll("time[data-clock]")) clock(time);
};

// A service inside of a company is often reached by http, where browsers keep the clipboard's own interface back.
const toClipboard = async (text) => {
  if (navigator.clipboard) { await navigator.clipboard.writeText(text); return; }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  const before = document.activeElement;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  before?.focus();
};

document.addEventListener("copying", (event) => toClipboard(event.detail)); // of the log's own script

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const { text, from } = button.dataset;
  const shown = button.querySelector("span");
  const before = shown.textContent;
  const wanted = from ? await fetch(from).then((got) => (got.ok ? got.text() : null), () => null)
    : text ?? button.parentElement.querySelector("code").textContent;
  if (wanted === null) return;
  await toClipboard(wanted);
  shown.textContent = button.dataset.done;
  setTimeout(() => { shown.textContent = before; }, 1500);
});

// Times in the reader's zone: as exact as the server wrote them and as wide, so that nothing moves. How long ago something
// was is the server's word, and is said anew while the page stands open; what it was exactly stands in the hint.
const two = (number) => String(number).padStart(2, "0");
const zoneAt = (at) => { // by hand: the browser's own formatter takes longer to make than the whole page to lay out
  const east = -at.getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(east) / 60), Math.abs(east) % 60];
  return `UTC${east ? `${east < 0 ? "-" : "+"}${hours}${minutes ? `:${two(minutes)}` : ""}` : ""}`;
};
const CLOCKS = { minute: [0, 16], full: [0, 19], time: [11, 19], day: [5, 19] };
const exactly = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const clock = (time) => {
  const at = new Date(time.dateTime);
  const before = time.textContent;
  time.textContent = exactly(at).slice(...CLOCKS[time.dataset.clock]);
  time.title = `${exactly(at)} ${zoneAt(at)} · ${before}`;
  delete time.dataset.clock;
};
const words = document.body.dataset.ago.split("|");
const ago = (time) => {
  const seconds = (Date.now() - new Date(time.dateTime)) / 1000;
  if (seconds < 0 || seconds >= 30 * 86400) return;
  const [unit, size] = seconds < 60 ? [0, 1] : seconds < 3600 ? [1, 60] : seconds < 86400 ? [2, 3600] : [3, 86400];
  time.textContent = words[unit].replace("#", Math.floor(seconds / size));
};
const local = (time) => {
  const at = new Date(time.dateTime);
  if (/^\d{4}-/.test(time.textContent)) time.textContent = exactly(at).slice(0, 10);
  time.title = `${exactly(at).slice(0, 16)} ${zoneAt(at)} · ${time.title}`;
};
setInterval(() => { for (const time of document.querySelectorAll("time[data-ago]")) ago(time); }, 30000);

// On a phone the pages' names scroll sideways: the one that is open comes into view.
const onward = () => {
  const [names, here] = [document.querySelector(".top nav"), document.querySelector(".top nav [aria-current]")];
  if (here) names.scrollLeft = here.offsetLeft - names.offsetLeft - (names.clientWidth - here.clientWidth) / 2;
};

const fresh = () => { prepare(document); onward(); };
fresh();
document.addEventListener("fresh", fresh);

// A link to what stands in a fold opens it, and so does a key that leads there.
const closed = (part) => part?.closest("details:not([open])");
const unfold = (part) => { for (let fold = closed(part); fold; fold = closed(fold)) fold.open = true; };
const named = () => document.getElementById(location.hash.slice(1));
unfold(named());
addEventListener("hashchange", () => unfold(named()));

// Keys: `?` shows them; j and k step through what shows the failure, or the rows of a list; l opens the log; Ctrl+K
// leads anywhere.
const palette = async () => (await import("./palette.js")).open();
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  palette();
});
document.addEventListener("click", (event) => { if (event.target.closest("[data-palette]")) palette(); });
const help = () => document.querySelector("dialog#keys");
document.addEventListener("click", (event) => { if (event.target.closest("[data-keys]")) help()?.showModal(); });
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || help()?.open) return;
  if (event.key === "?" && help()) help().showModal();
  else if (event.key === "/" && !document.querySelector("#pieces")) document.querySelector("#find")?.focus();
  else if (event.key === "l" && document.querySelector("[data-log]")) document.querySelector("[data-log]").click();
  else if ("jk".includes(event.key)) step(event.key === "j" ? 1 : -1);
  else return;
  event.preventDefault();
});
const step = (by) => {
  const steps = [...document.querySelectorAll("[data-step] a.n, main .title")].filter((link) => (closed(link) ?? link).checkVisibility());
  const here = steps.indexOf(document.activeElement);
  const next = steps[here < 0 ? (by > 0 ? 0 : steps.length - 1) : Math.min(Math.max(here + by, 0), steps.length - 1)];
  unfold(next);
  next?.focus();
};

// Lists from which one chooses: one box for all of the page.
for (const all of document.querySelectorAll("input[data-all]")) {
  const boxes = [...all.form.querySelectorAll(`input[name="${all.dataset.all}"][type=checkbox]`)];
  const follow = () => {
    const count = boxes.filter((box) => box.checked).length;
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  };
  all.addEventListener("change", () => { for (const box of boxes) box.checked = all.checked; });
  for (const box of boxes) box.addEventListener("change", follow);
  window.addEventListener("pageshow", follow);
}

// Work in the background: the page is shown anew until it has ended.
if (document.querySelector("[data-again]")) setTimeout(() => location.reload(), 1500);
