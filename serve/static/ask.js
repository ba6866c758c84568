// A real table's cards, and what the agents would play. Cards are typed, or tapped on a pad.

import * as api from "./api.js";
import { agentName, face, shown } from "./cards.js";
import { alarm, announce, button, field, h, newId, select } from "./dom.js";
import { bestText, suggestionElements } from "./hint.js";
import { load, save } from "./store.js";

const EXAMPLE = {
  players: "2",
  fields: {
    "/hand": "3 6 8 12 S",
    "/building/0": "5", "/building/1": "11", "/building/2": "2", "/building/3": "0",
    "/players/0/stock_top": "7", "/players/0/stock_size": "12", "/players/0/discards/0": "4", "/players/0/discards/1": "10",
    "/players/1/stock_top": "5", "/players/1/stock_size": "20", "/players/1/hand_size": "5",
    "/draw_size": "88",
  },
};
const PAD = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "S"];
const NAMED = { A: "1", J: "11", Q: "12", K: "S", W: "S", WILD: "S", JOKER: "S", "SKIP-BO": "S" };

/** The cards of a text such as "3 6, 8 12 S". */
function tokens(text) {
  return text.split(/[\s,;]+/).filter(Boolean);
}

export async function open(main) {
  const page = new Ask(main);
  await page.start();
  return page;
}

class Ask {
  constructor(main) {
    this.main = main;
    this.kept = { players: "2", fields: {}, ...load("ask", {}) };
    this.focused = null;
  }

  async start() {
    this.controls = new Map(); // pointer -> input
    this.result = h("section", { class: "panel hint", "aria-labelledby": "result-title", hidden: true });
    this.errors = h("p", { class: "error-text", role: "alert" });
    this.players = select(["2", "3", "4", "5", "6"].map((n) => [n, `${n} players`]), this.kept.players, { onchange: () => this.fill() });
    this.agent = select([["", "best here"]], "");
    this.fields = h("div", { class: "form" });
    this.main.replaceChildren(
      h("div", { class: "ask" },
        h("section", { class: "panel" }, h("h1", { text: "Ask for a move" }), h("p", { class: "lead", text: "Enter the cards of a real table as you see them, after drawing: 1 to 12 and S for a wild, or A, J, Q and K or Joker for playing cards." }),
          h("form", { class: "form", onsubmit: (event) => this.ask(event), oninput: () => this.keep() },
            h("div", { class: "columns" }, field("Table", this.players), field("Who is asked", this.agent)), this.fields, this.pad(), this.errors,
            h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Ask"), button("Example", () => this.take(EXAMPLE)), button("Clear", () => this.take({ players: this.players.value, fields: {} }))))),
        this.result),
    );
    this.fill();
    try {
      const listed = await api.agents();
      this.agent.replaceChildren(h("option", { value: "", text: `the service's own (${listed.default})` }), ...listed.agents.filter(({ name }) => name !== listed.default).map(({ name }) => h("option", { value: name, text: agentName(name) })));
    } catch (fault) {
      if (this.result.isConnected) alarm(fault.status === 0 ? "The service does not answer." : fault.message);
    }
  }

  redrawAll() {
    this.fill();
  }

  take(state) {
    this.kept = structuredClone(state);
    this.players.value = state.players;
    this.controls.clear();
    this.fill();
    this.keep();
    this.result.hidden = true;
  }

  keep() {
    const fields = {};
    for (const [pointer, control] of this.controls) if (control.value !== "") fields[pointer] = control.value;
    this.kept = { players: this.players.value, fields };
    save("ask", this.kept);
  }

  text(pointer, label, props = {}) {
    const input = h("input", { autocomplete: "off", autocapitalize: "characters", spellcheck: "false", value: this.kept.fields[pointer] ?? "", ...props });
    if (matchMedia("(pointer: coarse)").matches) input.setAttribute("inputmode", "none");
    input.addEventListener("focus", () => { this.focused = input; this.padElement.hidden = false; });
    this.controls.set(pointer, input);
    return field(label, input);
  }

  number(pointer, label, props) {
    const input = h("input", { type: "number", inputmode: "numeric", value: this.kept.fields[pointer] ?? "", ...props });
    input.addEventListener("focus", () => { this.focused = null; });
    this.controls.set(pointer, input);
    return field(label, input);
  }

  fill() {
    if (this.controls.size) this.keep();
    this.controls.clear();
    const n = Number(this.players.value);
    const pile = (i) => {
      const control = select(Array.from({ length: 12 }, (_, height) => [height, height ? shown(String(height)) : "empty"]), this.kept.fields[`/building/${i}`] ?? "0");
      this.controls.set(`/building/${i}`, control);
      return field(`Pile ${i + 1}`, control);
    };
    const discards = (seat) => h("div", { class: "quarters" }, Array.from({ length: 4 }, (_, i) => this.text(`/players/${seat}/discards/${i}`, `Discard ${i + 1}`, { placeholder: "bottom to top" })));
    const board = (seat) => h("fieldset", {}, h("legend", { text: seat ? `Player ${seat + 1}` : "You" }),
      seat ? null : this.handField(),
      h("div", { class: "thirds" }, this.text(`/players/${seat}/stock_top`, "Stock shows", { maxlength: 8 }), this.number(`/players/${seat}/stock_size`, "Stock cards left", { min: 0, max: 40 }), seat ? this.number(`/players/${seat}/hand_size`, "Cards in hand", { min: 0, max: 20, placeholder: "5" }) : null),
      discards(seat));
    this.fields.replaceChildren(
      h("fieldset", {}, h("legend", { text: "Building piles show" }), h("div", { class: "quarters" }, [0, 1, 2, 3].map(pile))),
      ...Array.from({ length: n }, (_, seat) => board(seat)),
      h("div", { class: "columns" }, this.number("/draw_size", "Cards in the draw pile (if you know)", { min: 0, max: 162 })),
    );
  }

  handField() {
    const preview = h("div", { class: "preview", "aria-hidden": "true" });
    const element = this.text("/hand", "Your hand", { placeholder: "3 6 8 12 S" });
    const input = this.controls.get("/hand");
    const draw = () => preview.replaceChildren(...tokens(input.value).map((text) => NAMED[text.toUpperCase()] ?? text.toUpperCase()).filter((card) => PAD.includes(card)).map((card) => face(card)));
    input.addEventListener("input", draw);
    draw();
    return h("div", { class: "handline" }, element, preview);
  }

  /** Buttons that write into the card field that has the focus. */
  pad() {
    const id = newId("pad");
    const press = (text) => {
      const input = this.focused;
      if (!input?.isConnected) return;
      const cards = tokens(input.value);
      if (text === null) cards.pop();
      else if (input.maxLength > 0) cards.splice(0, cards.length, text);
      else cards.push(text);
      input.value = cards.join(" ");
      input.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const keep = (event) => event.preventDefault(); // the field keeps the focus
    this.padElement = h("div", { class: "pad", role: "group", "aria-label": "Cards to enter", id, hidden: true },
      PAD.map((card) => button(shown(card), () => press(card), { onpointerdown: keep, onmousedown: keep, "aria-label": card === "S" ? "Wild" : card })),
      button("⌫", () => press(null), { onpointerdown: keep, onmousedown: keep, "aria-label": "Take the last card away" }));
    return this.padElement;
  }

  position() {
    const value = (pointer) => this.controls.get(pointer)?.value.trim() ?? "";
    const optional = (pointer, name) => (value(pointer) === "" ? {} : { [name]: Number(value(pointer)) });
    const n = Number(this.players.value);
    const players = Array.from({ length: n }, (_, seat) => {
      const at = `/players/${seat}`;
      const hand = tokens(value("/hand")).length;
      return {
        stock_top: value(`${at}/stock_top`) || null,
        stock_size: Number(value(`${at}/stock_size`) || 0),
        discards: [0, 1, 2, 3].map((i) => tokens(value(`${at}/discards/${i}`))),
        ...(seat ? optional(`${at}/hand_size`, "hand_size") : { hand_size: hand }),
      };
    });
    return {
      rules: { players: n },
      hand: tokens(value("/hand")),
      building: [0, 1, 2, 3].map((i) => Number(value(`/building/${i}`))),
      you: 0,
      players,
      ...optional("/draw_size", "draw_size"),
    };
  }

  async ask(event) {
    event.preventDefault();
    this.keep();
    this.errors.textContent = "";
    this.controls.forEach((control) => control.removeAttribute("aria-invalid"));
    const body = { position: this.position(), top: 12, ...(this.agent.value ? { agent: this.agent.value } : {}) };
    try {
      const answer = await api.suggest(body);
      if (!this.result.isConnected) return;
      alarm(null);
      this.result.hidden = false;
      this.result.replaceChildren(h("h2", { id: "result-title", text: "Suggestion" }), ...suggestionElements(answer, { own: 0, side: 0, shown: 6 }).flat(2));
      this.result.querySelector("li")?.scrollIntoView({ block: "nearest" });
      announce(bestText(answer, 0));
    } catch (fault) {
      if (this.result.isConnected) this.refused(fault);
    }
  }

  /** Say what is wrong beside the field that it is about. */
  refused(fault) {
    if (fault.status === 0) {
      alarm("The service does not answer.");
      return;
    }
    this.result.hidden = true;
    const pointer = (fault.problem.pointer ?? "").replace(/^\/position/, "");
    const control = [...this.controls].find(([name]) => pointer === name || pointer.startsWith(`${name}/`))?.[1];
    const text = control ? fault.message : fault.problem.detail ?? fault.message; // else it has to name the field
    this.errors.textContent = fault.kind === "unknown-agent" ? `This agent is not available: ${text}` : text;
    if (control) {
      control.setAttribute("aria-invalid", "true");
      control.focus();
    }
  }
}
