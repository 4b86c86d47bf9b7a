// The API reference: the box leaves the routes whose method, path or description has all of its words.
const box = document.querySelector("#narrow");
const noMatch = document.querySelector("#narrowed");
const narrow = () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const section of document.querySelectorAll("section.story")) {
    let here = 0;
    for (const route of section.querySelectorAll("details.part")) {
      const text = route.querySelector("summary").textContent.toLowerCase();
      route.hidden = !words.every((word) => text.includes(word));
      here += route.hidden ? 0 : 1;
    }
    section.hidden = here === 0;
    found += here;
  }
  noMatch.textContent = found ? "" : noMatch.dataset.none;
};
box.addEventListener("input", narrow);
addEventListener("pageshow", narrow);
