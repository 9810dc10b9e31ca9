"use strict";
// The pages work without it. It finds recipes on the first page, and compares two builds.
const element = (id) => document.getElementById(id);
const find = element("find");
if (find) {
  const rows = [...document.querySelectorAll(".rows > li")];
  const show = () => {
    const words = element("words").value.toLowerCase().split(/\s+/), state = element("state").value;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every((word) => text.includes(word)) && ["", row.dataset.state].includes(state));
    }
    for (const group of document.querySelectorAll("section:has(.rows)"))
      group.hidden = !group.querySelector("li:not([hidden])");
    element("found").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} recipes`;
  };
  find.hidden = false;
  find.addEventListener("input", show);
  show();
}
// A build's values by one name each: "stages compile", "needs glibc".
const values = (value, name, found) => {
  if (value !== null && typeof value === "object")
    for (const [key, inner] of Object.entries(value))
      values(inner, `${name} ${inner?.program ?? (Array.isArray(value) ? +key + 1 : key)}`.trim(), found);
  else if (value !== "" && value !== null && !/ program$/.test(name)) found.set(name, value.toLocaleString("en"));
  return found;
};
const compare = async (table, ids) => {
  const [one, two] = await Promise.all(ids.map(async (id) => {
    const answer = await fetch(`builds/${encodeURIComponent(id)}/build.json`);
    if (!answer.ok) throw new Error(`There is no build ${id}.`);
    const { id: _, against, changed, commits, differences, logs, profile, ...build } = await answer.json();
    return values(build, "", new Map());
  }));
  const names = [...new Set([...one.keys(), ...two.keys()])];
  const differs = (name) => one.get(name) !== two.get(name);
  for (const name of [...names.filter(differs), ...names.filter((name) => !differs(name))]) {
    const row = table.tBodies[0].insertRow(), same = !differs(name);
    const head = row.appendChild(document.createElement("th"));
    head.scope = "row";
    head.textContent = name;
    head.className = "long";
    for (const build of [one, two]) {
      const cell = row.insertCell();
      cell.textContent = build.get(name) ?? "";
      cell.className = "long";
    }
    row.className = same ? "soft" : "";
  }
  table.hidden = false;
};
if (element("comparison")) {
  const asked = new URLSearchParams(location.search), ids = ["a", "b"].map((name) => asked.get(name));
  ids.forEach((id, number) => (element("ab"[number]).value = id ?? ""));
  if (ids.every(Boolean))
    compare(element("comparison"), ids).catch((fault) => (element("problem").textContent = fault.message));
}
