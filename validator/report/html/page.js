"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = {e: "equal", d: "different", w: "waived", n: "not exercised", a: "absent"};
  const signs = {e: "=", d: "≠", w: "w", n: "○", a: ""};
  const root = document.documentElement;
  root.classList.add("scripted");

  const make = (name, attributes, ...content) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...content);
    return element;
  };
  const grid = map => document.querySelector(`table.map[data-map="${map}"]`);
  const rowsOf = table => [...table.tBodies[0].rows];
  const cellsOf = row => [...row.querySelectorAll(".go")];

  // Theme: what the system says, until a person says otherwise.
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Tabs: one map at a time.
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const choose = (tab, focus) => {
    for (const each of tabs) {
      const on = each === tab;
      each.setAttribute("aria-selected", on);
      each.tabIndex = on ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    const panel = document.getElementById(tab.getAttribute("aria-controls"));
    const start = panel.querySelector('.go[tabindex="0"]'), scroll = panel.querySelector(".scroll");
    if (start) show(scroll, start);
  };
  // Bring a cell into the sideways scrolling part, without moving the page.
  const show = (scroll, cell) => {
    const place = cell.getBoundingClientRect(), frame = scroll.getBoundingClientRect();
    if (place.right > frame.right || place.left < frame.left + 160) {
      scroll.scrollLeft += place.left - frame.left - frame.width / 2;
    }
  };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      choose(tabs[(at + step + tabs.length) % tabs.length], true);
    });
  });
  if (tabs.length) choose(tabs[0]);

  // The rows of one group's ranks, made when they are asked for.
  const unfold = (table, button) => {
    const map = data.maps[table.dataset.map], group = Number(button.dataset.group);
    const row = button.closest("tr");
    const opened = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", !opened);
    if (opened) {
      for (const each of rowsOf(table)) if (each.dataset.of === String(group)) each.remove();
      return;
    }
    const begins = [...row.querySelectorAll("td")].map(cell => cell.classList.contains("begin"));
    row.after(...map.rows.map(([ranks, count], at) => {
      const name = `${count > 1 ? "ranks" : "rank"} ${ranks}`;
      const cells = [...map.states[group][at]].map((letter, column) => {
        const label = `${map.groups[group]}, ${name}, ${map.columns[column]}: ${words[letter]}`;
        const go = make("button", {type: "button", class: "go", tabindex: -1, "data-group": group, "data-row": at,
          "data-column": column, "aria-label": label}, signs[letter]);
        return make("td", {class: letter + (begins[column] ? " begin" : "")}, go);
      });
      return make("tr", {class: "ranks", "data-of": group}, make("th", {scope: "row"}, name), ...cells);
    }));
  };

  const copied = (button, text) => {
    const said = button.textContent;
    const done = word => { button.textContent = word; setTimeout(() => { button.textContent = said; }, 1500); };
    const byHand = () => {
      const area = make("textarea", {"aria-hidden": "true"});
      area.value = text;
      button.after(area);
      area.select();
      done(document.execCommand("copy") ? "Copied" : "Press Ctrl+C");
      area.remove();
      button.focus();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done("Copied"), byHand); else byHand();
  };

  // What is behind a cell: each row of ranks that differs, with its tensors.
  const tensors = cell => {
    const [moment, rank, differing, leaves, found] = cell;
    const parts = [make("p", {}, `${moment}, rank ${rank}: ${differing} of ${leaves} leaves differ.`)];
    if (found.length) {
      const head = make("tr", {}, ...["leaf", "type and shape", "expected", "observed", "note"].map(
        word => make("th", {scope: "col"}, word)));
      const body = found.map(([leaf, kind, expected, observed, note]) => {
        const [name, form] = data.leaves[leaf];
        return make("tr", {}, make("th", {scope: "row"}, make("code", {}, name)), make("td", {}, make("code", {}, form)),
          ...[expected, observed].map(digest => make("td", {}, make("code", {}, digest || "none"))),
          make("td", {}, [kind === "leaf" ? "" : kind, note].filter(Boolean).join("; ")));
      });
      const label = `What differs at ${moment}, rank ${rank}`;
      parts.push(make("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": label},
        make("table", {class: "tensors"}, make("thead", {}, head), make("tbody", {}, ...body))));
    }
    if (found.length < differing) {
      parts.push(make("p", {class: "quiet"}, found.length ? `The first ${found.length} are listed.`
        : "They are not listed: one side lacks the whole group, or the page has no room for more."));
    }
    return parts;
  };
  const asText = panel => [...panel.querySelectorAll("h3,p,tr")].map(line => line.tagName === "TR"
    ? [...line.cells].map(cell => cell.textContent).join("\t") : line.textContent).join("\n") + "\n";

  const open = (table, go, focus) => {
    const name = table.dataset.map, map = data.maps[name];
    const group = Number(go.dataset.group), column = Number(go.dataset.column);
    const panel = document.querySelector(`[data-panel="${name}"]`);
    for (const each of table.querySelectorAll("[aria-current]")) each.removeAttribute("aria-current");
    go.setAttribute("aria-current", "true");
    const rows = go.dataset.row === undefined ? map.rows.map((_, at) => at) : [Number(go.dataset.row)];
    const heading = make("h3", {tabindex: -1}, `${map.groups[group]}, ${map.columns[column]}, against ${map.expected}`);
    const close = make("button", {type: "button"}, "Back to the map");
    close.addEventListener("click", () => go.focus());
    const copy = make("button", {type: "button"}, "Copy");
    copy.addEventListener("click", () => copied(copy, asText(panel)));
    const parts = [];
    const say = (letter, of) => {
      const ranks = of.map(row => map.rows[row][0]).join(", ");
      const many = of.length > 1 || map.rows[of[0]][1] > 1;
      parts.push(make("p", {}, make("span", {class: `mark ${letter}`}, words[letter]), ` ${many ? "ranks" : "rank"} ${ranks}`));
    };
    const letterOf = row => map.states[group][row][column], cellOf = row => map.cells[`${row},${column},${group}`];
    for (const letter of "dw") {
      for (const row of rows.filter(row => letterOf(row) === letter && cellOf(row))) {
        say(letter, [row]);
        parts.push(...tensors(cellOf(row)));
      }
      const closed = rows.filter(row => letterOf(row) === letter && !cellOf(row));
      if (closed.length) {
        say(letter, closed);
        parts.push(make("p", {class: "quiet"}, "Not opened: the page has no room for more; earlier cells are."));
      }
    }
    for (const letter of "ena") {
      const alike = rows.filter(row => letterOf(row) === letter);
      if (alike.length) say(letter, alike);
    }
    panel.replaceChildren(make("div", {class: "head"}, heading, make("div", {}, copy, " ", close)), ...parts);
    panel.classList.add("opened");
    panel.onkeydown = event => { if (event.key === "Escape") go.focus(); };
    if (focus) heading.focus();
  };

  const move = (table, go, key, ends) => {
    const rows = rowsOf(table).filter(row => cellsOf(row).length), row = rows.indexOf(go.closest("tr"));
    const cells = cellsOf(rows[row]), at = cells.indexOf(go);
    const to = {
      ArrowRight: [row, at + 1], ArrowLeft: [row, at - 1], ArrowDown: [row + 1, at], ArrowUp: [row - 1, at],
      Home: [ends ? 0 : row, 0], End: [ends ? rows.length - 1 : row, cells.length - 1],
    }[key];
    if (!to || !rows[to[0]]) return Boolean(to);
    const next = cellsOf(rows[to[0]])[to[1]];
    if (next) {
      for (const each of table.querySelectorAll('.go[tabindex="0"]')) each.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    return true;
  };

  for (const table of document.querySelectorAll("table.map")) {
    table.addEventListener("click", event => {
      const toggle = event.target.closest(".unfold"), go = event.target.closest(".go");
      if (toggle) unfold(table, toggle);
      if (go) {
        for (const each of table.querySelectorAll('.go[tabindex="0"]')) each.tabIndex = -1;
        go.tabIndex = 0;
        open(table, go, true);
      }
    });
    table.addEventListener("keydown", event => {
      const go = event.target.closest(".go");
      if (go && move(table, go, event.key, event.ctrlKey)) event.preventDefault();
    });
  }

  // From elsewhere in the page to a cell; where no group is named, to the worst of the column.
  for (const button of document.querySelectorAll("button.open")) {
    button.addEventListener("click", () => {
      const {map: name, column} = button.dataset, map = data.maps[name], table = grid(name), at = Number(column);
      const group = button.dataset.group !== undefined ? Number(button.dataset.group) : worst(map, at);
      choose(document.getElementById(`tab-${name}`));
      const go = table.querySelector(`.go[data-group="${group}"][data-column="${at}"]`);
      for (const each of table.querySelectorAll('.go[tabindex="0"]')) each.tabIndex = -1;
      go.tabIndex = 0;
      show(table.parentElement, go);
      open(table, go, true);
    });
  }
  const worst = (map, column) => {
    for (const letter of "dw") {
      const found = map.groups.findIndex((_, group) => map.states[group].some(line => line[column] === letter));
      if (found >= 0) return found;
    }
    return 0;
  };

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => copied(button, button.parentElement.querySelector("pre").textContent));
  }
})();
