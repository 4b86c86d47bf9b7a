// Search of the knowledge base: the answer follows the question and its filters; without script the button asks.
const form = document.querySelector("form#ask");
const answer = document.querySelector("#answer");
let asked = 0;

const ask = async () => {
  const mine = (asked += 1);
  const given = [...new FormData(form)].filter(([, value]) => value);
  const address = given.length ? `/knowledge?${new URLSearchParams(given)}` : "/knowledge";
  const page = await fetch(address).then((got) => (got.ok ? got.text() : null), () => null);
  if (page === null || mine !== asked) return;
  const fresh = new DOMParser().parseFromString(page, "text/html").querySelector("#answer");
  answer.replaceChildren(...fresh.childNodes);
  history.replaceState(null, "", address);
};

let waiting;
form.querySelector("input").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(ask, 150);
});
for (const choice of form.querySelectorAll("select")) choice.addEventListener("change", ask);
