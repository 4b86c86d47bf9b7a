// The palette of Ctrl+K: words in, places to go out. Fetched when somebody first asks for it.
const dialog = document.createElement("dialog");
dialog.className = "palette";
const found = () => dialog.querySelector("[role=listbox]");
const options = () => [...dialog.querySelectorAll("[role=option]")];
let asked = 0;
let answered = Promise.resolve(); // when the list is that of the words in the box

const select = (option) => {
  for (const one of options()) one.setAttribute("aria-selected", String(one === option));
  dialog.querySelector("input")?.setAttribute("aria-activedescendant", option?.id ?? "");
  option?.scrollIntoView({ block: "nearest" });
};

const get = async (words) => {
  const answer = await fetch(`/palette?q=${encodeURIComponent(words)}`);
  return new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
};

const ask = async (words) => { // only the latest words are answered
  const mine = ++asked;
  const page = await get(words).catch(() => null);
  if (mine !== asked) return answered; // whoever waits, waits for the later words
  const list = page?.querySelector("[role=listbox]");
  if (!list) return undefined;
  found().replaceWith(list);
  select(options()[0]);
  return undefined;
};

const go = (option) => { if (option) location.assign(option.dataset.go); };

const act = (key) => {
  const all = options();
  const here = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
  const by = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (by) select(all[(here + by + all.length) % all.length]);
  else go(all[here]);
};

// A key pressed before the answer is there acts on the answer, never on the list of earlier words.
const move = (event) => {
  if (!["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) return;
  event.preventDefault();
  answered.then(() => act(event.key));
};

// Its looks are those of lists, which not every page has.
const styled = () => new Promise((done) => {
  if (document.querySelector('link[href*="lists.css"]')) { done(); return; }
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL("lists.css", import.meta.url);
  sheet.onload = sheet.onerror = done;
  document.head.append(sheet);
});

export const open = async () => {
  if (dialog.open) { dialog.close(); return; }
  await styled();
  const page = await get("");
  dialog.replaceChildren(...page.body.childNodes);
  if (!dialog.isConnected) document.body.append(dialog);
  dialog.showModal();
  const input = dialog.querySelector("input");
  input.addEventListener("input", () => { answered = ask(input.value.trim()); });
  input.addEventListener("keydown", move);
  select(options()[0]);
  input.focus();
};

dialog.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) go(option);
  else if (event.target === dialog) dialog.close();
});
