// What script adds to pages that work without it: copying, local times, dropping files, upload progress, waiting.

for (const button of document.querySelectorAll("button.copy")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const shown = button.querySelector("span");
    const before = shown.textContent;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    shown.textContent = button.dataset.done;
    setTimeout(() => { shown.textContent = before; }, 1500);
  });
}

// The same form as the server's UTC, so that nothing moves; both stand in the tooltip.
const two = (number) => String(number).padStart(2, "0");
const zones = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" });
for (const time of document.querySelectorAll("time[data-local]")) {
  const at = new Date(time.dateTime);
  const zone = zones.formatToParts(at).find((part) => part.type === "timeZoneName").value.replace("GMT", "UTC");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  time.title = time.textContent;
  time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
  time.title += ` · ${time.textContent} ${zone}`;
}

const form = document.querySelector("form#paste");
if (form) {
  const problem = form.querySelector("#problem");
  const bar = form.querySelector("#progress progress");
  const said = form.querySelector("#progress span");
  const button = form.querySelector("button[type=submit]");
  const say = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
  };
  const end = (text) => {
    bar.hidden = true;
    said.textContent = "";
    button.disabled = false;
    say(text);
  };

  const send = (data) => {
    say("");
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.hidden = false;
      bar.value = event.loaded / event.total;
      const share = Math.floor((100 * event.loaded) / event.total);
      said.textContent = share < 100 ? `${form.dataset.uploading} ${share} %` : form.dataset.reading;
    });
    request.addEventListener("load", () => {
      if (request.status < 300) {
        location.assign(request.responseURL);
        return;
      }
      let message = form.dataset.broken;
      try {
        message = JSON.parse(request.responseText).error.message;
      } catch { /* an answer that a proxy gave */ }
      end(message);
    });
    request.addEventListener("error", () => end(form.dataset.broken));
    button.disabled = true;
    said.textContent = form.dataset.reading;
    request.send(data);
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(form);
    const chosen = data.getAll("log").some((file) => file.size > 0 || file.name);
    if (!data.get("pasted").trim()) data.delete("pasted");
    if (!chosen) data.delete("log");
    if ([...data.keys()].length) send(data);
    else say(form.dataset.nothing);
  });
  window.addEventListener("pageshow", () => end(problem.textContent));

  // Enter and leave come for every element on the way, so they are counted.
  let inside = 0;
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const show = () => document.body.classList.toggle("dropping", inside > 0);
  document.addEventListener("dragenter", (event) => { if (holdsFiles(event)) { inside += 1; show(); } });
  document.addEventListener("dragleave", (event) => { if (holdsFiles(event)) { inside -= 1; show(); } });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    inside = 0;
    show();
    const data = new FormData();
    for (const file of event.dataTransfer.files) data.append("log", file);
    if (data.has("log")) send(data);
  });
}

// An incident that is being triaged: ask now and then, and show the page anew when there is an answer.
if (document.querySelector("[data-wait]")) {
  const ask = async () => {
    const answer = await fetch(`/api/v1${location.pathname}`).catch(() => null);
    const state = answer?.ok ? (await answer.json()).state : "";
    if (state === "triaged" || state === "failed") location.reload();
    else setTimeout(ask, 1000);
  };
  setTimeout(ask, 700);
}

// Search of the knowledge base: the answer follows the question while it is typed.
const question = document.querySelector("form#ask input");
if (question) {
  let typed = 0;
  const answer = async () => {
    const mine = typed;
    const address = `/knowledge?${new URLSearchParams({ q: question.value })}`;
    const page = await fetch(address).then((got) => (got.ok ? got.text() : null), () => null);
    if (page === null || mine !== typed) return;
    const fresh = new DOMParser().parseFromString(page, "text/html").querySelector("#answer");
    document.querySelector("#answer").replaceChildren(...fresh.childNodes);
    history.replaceState(null, "", question.value ? address : "/knowledge");
  };
  question.addEventListener("input", () => {
    typed += 1;
    const mine = typed;
    setTimeout(() => { if (mine === typed) answer(); }, 200);
  });
}
