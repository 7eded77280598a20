"use strict";
const sections = JSON.parse(document.getElementById("data").textContent).sections;
const tip = document.getElementById("tip");

for (const section of document.querySelectorAll(".plot, .timeline")) {
  chooseVariants(section);
  toggleSeries(section);
  followPointer(section);
}
for (const table of document.querySelectorAll("table")) {
  sortByColumns(table);
}

// Buttons such as "linear" and "log" show one drawing and hide the others.
function chooseVariants(section) {
  const buttons = section.querySelectorAll("button.variant");
  const drawings = section.querySelectorAll("figure > div");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const chosen = button.dataset.variant;
      buttons.forEach(b => b.setAttribute("aria-pressed", b.dataset.variant === chosen));
      drawings.forEach(d => { d.hidden = d.dataset.variant !== chosen; });
    });
  }
}

// A legend entry hides its series, and shows it again.
function toggleSeries(section) {
  for (const button of section.querySelectorAll("button.legend")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", shown);
      for (const group of section.querySelectorAll(`g[data-series="${button.dataset.series}"]`)) {
        group.style.display = shown ? "" : "none";
      }
    });
  }
}

// The tip tells the nearest point of a plot, or the moment of a timeline under the pointer.
function followPointer(section) {
  const figure = section.querySelector("figure");
  const describe = section.classList.contains("plot") ? nearestPoint : momentAt;
  const move = event => showTip(describe(section, event), event);
  figure.addEventListener("pointermove", move);
  figure.addEventListener("pointerdown", move);
  figure.addEventListener("pointerleave", () => showTip(nearestPoint(section, null), null));
}

function nearestPoint(section, event) {
  section.querySelector(".near")?.classList.remove("near");
  if (!event) return "";
  const [svg, at] = place(section, event);
  let nearest = null;
  let least = 24 * 24;
  for (const point of svg.querySelectorAll(".point")) {
    if (point.parentNode.style.display === "none") continue;
    const [dx, dy] = [point.cx.baseVal.value - at.x, point.cy.baseVal.value - at.y];
    if (dx * dx + dy * dy < least) [least, nearest] = [dx * dx + dy * dy, point];
  }
  nearest?.classList.add("near");
  return nearest ? nearest.dataset.note : "";
}

function momentAt(section, event) {
  const panel = event.target.closest("[data-lane]");
  if (!panel) return "";
  const { lane, left, right, end } = panel.dataset;
  const { name, activities, reads, end: last } = sections[section.dataset.section].lanes[lane];
  const time = (place(section, event)[1].x - left) / (right - left) * end;
  if (time < 0 || time > last) return "";
  const doing = activities.findLast(([from]) => from <= time)?.[1] ?? "";
  const inFlight = reads.findLast(([from]) => from <= time)?.[1] ?? 0;
  return `${name} at ${time.toFixed(1)} µs\n${doing}\n${inFlight} reads in flight`;
}

// The drawing that is shown, and where the pointer is in its coordinates.
function place(section, event) {
  const svg = section.querySelector("figure > div:not([hidden]) > svg");
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [svg, at];
}

function showTip(text, event) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
  const below = event.clientY + 18 + height < innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below ? event.clientY + 18 : event.clientY - height - 12}px`;
}

// A click on a column's name sorts by its exact values, a second one the other way round.
function sortByColumns(table) {
  const cells = sections[table.dataset.section].rows;
  const heads = [...table.querySelectorAll("th")];
  const body = table.tBodies[0];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const value = row => cells[row.dataset.row][column];
    const order = (a, b) => typeof a === "number" && typeof b === "number"
      ? a - b : String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
    body.append(...[...body.rows].sort((a, b) => sign * order(value(a), value(b))));
  }));
}
