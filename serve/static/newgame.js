// The form for a new game, and the page's first view.

import * as api from "./api.js";
import { agentName } from "./cards.js";
import { alarm, field, h, newId, select } from "./dom.js";
import * as sheet from "./sheet.js";
import { load, save } from "./store.js";

const TABLES = [
  ["2", "2 players", { players: 2, teams: 0 }],
  ["3", "3 players", { players: 3, teams: 0 }],
  ["4", "4 players", { players: 4, teams: 0 }],
  ["5", "5 players", { players: 5, teams: 0 }],
  ["6", "6 players", { players: 6, teams: 0 }],
  ["4t2", "Partners, 2 teams of 2", { players: 4, teams: 2 }],
  ["6t3", "Partners, 3 teams of 2", { players: 6, teams: 3 }],
  ["6t2", "Partners, 2 teams of 3", { players: 6, teams: 2 }],
];
const GAMES = [
  ["standard", "Standard, 30 cards"],
  ["medium", "Medium, 20 cards"],
  ["family", "Family, 15 cards, stock first"],
  ["short", "Short, 10 cards"],
  ["strict", "Strict, with all house rules"],
];
const PERSON = "person:";
const ABOUT = {
  best: "best here",
  random: "random, any legal card",
  "play-first": "play-first, beginner",
  simple: "simple, easy",
  greedy: "greedy, medium",
};
// Kinds of agents, by their method: what the list of opponents is parted into.
const KINDS = [
  ["level", "By strength"],
  ["turn", "Trained models"],
  ["policy", "At a glance, without search"],
  ["search", "With search, which takes longer"],
  ["rules", "By rules"],
];

/** The agents that play a table, as groups of [name, text] for a drop-down; the best one is alone on top. */
function opponents(able) {
  const text = ({ name }) => ABOUT[name] ?? agentName(name);
  const known = KINDS.map(([method]) => method);
  const kind = (agent) => (known.includes(agent.method) ? agent.method : "rules");
  const rest = able.filter(({ name }) => name !== "best");
  return [
    ...able.filter(({ name }) => name === "best").map((agent) => [agent.name, text(agent)]),
    ...KINDS.map(([method, label]) => [label, rest.filter((agent) => kind(agent) === method).map((agent) => [agent.name, text(agent)])]).filter(([, options]) => options.length),
  ];
}

function plays(agent, { players, teams }) {
  const fits = (value, wanted) => value === null || value === undefined || (Array.isArray(value) ? value.includes(wanted) : value === wanted);
  return fits(agent.players, players) && fits(agent.teams, teams);
}

function check(label, checked) {
  const input = h("input", { type: "checkbox", id: newId("check"), checked });
  return { input, element: h("div", { class: "check" }, input, h("label", { for: input.id, text: label })) };
}

/** The form; `onstart` gets the API's answer for the new game. */
export function newGameForm({ agents, presets }, onstart) {
  const last = load("newgame", {});
  const table = select(TABLES, last.table ?? "2", { "data-key": "form:table" });
  const kind = select(GAMES.filter(([name]) => name in presets), last.kind ?? "standard");
  const stock = h("input", { type: "number", min: 1, max: 40, inputmode: "numeric", placeholder: "as the game says" });
  const seat = h("select");
  const seats = h("div", { class: "seats" });
  const must = check("A stock card that fits must be played", false);
  const wilds = check("Wilds may not be discarded", false);
  const ordered = check("Discard piles only upwards", false);
  const fewest = check("When nobody can move, the fewest stock cards win", false);
  const team = check("Discard on the partner's piles too", false);
  const match = check("Keep the score over several games", last.match ?? true);
  const target = select([["500", "500 points"], ["300", "300 points"]], last.target ?? "500");
  const errors = h("p", { class: "error-text", role: "alert" });
  const chosen = { ...(last.agents ?? {}) };
  let submit;

  const shape = () => TABLES.find(([key]) => key === table.value)[2];

  const fillSeats = () => {
    const { players, teams } = shape();
    const mine = Math.min(Number(seat.value || last.seat || 0), players - 1);
    seat.replaceChildren(...Array.from({ length: players }, (_, i) => h("option", { value: i, text: `Seat ${i + 1}` })));
    seat.value = String(mine);
    const able = agents.agents.filter((agent) => plays(agent, shape()));
    const options = opponents(able);
    // First stands a good one, for whoever only presses Start.
    if (!able.some(({ name }) => name === agents.default)) options.unshift(["", `the service's own, ${agents.default}`]);
    options.push([PERSON, "a person at this screen"]);
    const names = new Set(["", PERSON, ...able.map(({ name }) => name)]);
    seats.replaceChildren(...Array.from({ length: players }, (_, i) => {
      if (i === mine) return null;
      const role = teams && i % teams === mine % teams ? ", your partner" : "";
      const wanted = names.has(chosen[i]) ? chosen[i] : able.some(({ name }) => name === agents.default) ? agents.default : "";
      const choice = select(options, wanted, { "data-seat": i, onchange: () => { chosen[i] = choice.value; } });
      return field(`Seat ${i + 1}${role}`, choice);
    }).filter(Boolean));
    team.element.hidden = !teams;
  };

  const fillRules = () => {
    const preset = presets[kind.value] ?? {};
    must.input.checked = Boolean(preset.must_play_stock);
    wilds.input.checked = preset.wild_discard === false;
    ordered.input.checked = Boolean(preset.ordered_discards);
    stock.value = preset.stock_size ?? "";
  };

  const request = () => {
    const { players, teams } = shape();
    const mine = Number(seat.value);
    const choices = [...seats.querySelectorAll("select")];
    const people = choices.filter((choice) => choice.value === PERSON).map((choice) => Number(choice.dataset.seat));
    const named = choices.map((choice) => choice.value).filter((value) => value !== PERSON);
    const first = Math.floor(Math.random() * players);
    return {
      rules: {
        players,
        teams,
        stock_size: stock.value === "" ? null : Number(stock.value),
        must_play_stock: must.input.checked,
        wild_discard: !wilds.input.checked,
        ordered_discards: ordered.input.checked,
        stalemate: fewest.input.checked ? "fewest_stock" : "draw",
        team_discard: teams && team.input.checked ? "team" : "own",
        target_score: Number(target.value),
        first_player: first,
      },
      ...(people.length ? { seats: [mine, ...people] } : { seat: mine }),
      ...(named.some(Boolean) ? { agents: named } : {}),
    };
  };

  const start = async (event) => {
    event.preventDefault();
    errors.textContent = "";
    const body = request();
    if (body.agents?.includes("")) {
      errors.textContent = "The service's own agent plays all the other seats or none: it has no name to ask for.";
      return;
    }
    submit.disabled = true;
    try {
      const view = await api.newGame(body);
      save("newgame", { table: table.value, kind: kind.value, seat: Number(seat.value), agents: chosen, match: match.input.checked, target: target.value });
      if (match.input.checked) sheet.begin(body, body.rules.first_player, body.rules.target_score, view.id);
      if (!submit.isConnected) return; // another view is looked at by now
      alarm(null);
      onstart(view);
    } catch (fault) {
      errors.textContent = fault.kind === "unknown-agent" ? `This agent is not available: ${fault.message}` : fault.message;
      submit.disabled = false;
    }
  };

  table.addEventListener("change", fillSeats);
  seat.addEventListener("change", fillSeats);
  kind.addEventListener("change", fillRules);
  fillSeats();
  fillRules();
  submit = h("button", { type: "submit", class: "primary", "data-key": "form:start" }, "Deal the cards");
  return h(
    "form",
    { class: "form", onsubmit: start, novalidate: false },
    h("div", { class: "columns" }, field("Table", table), field("Game", kind)),
    h("fieldset", {}, h("legend", { text: "Who plays" }), h("div", { class: "columns" }, field("You sit on", seat), seats)),
    h("details", {}, h("summary", { text: "Stock size and house rules" }), h("div", { class: "inner" }, field("Cards in each stock", stock, "1 to 40; empty for the usual number"), must.element, wilds.element, ordered.element, fewest.element, team.element)),
    h("div", { class: "columns" }, match.element, field("Match to", target)),
    errors,
    h("div", { class: "actions" }, submit),
  );
}

/** What the form needs to know of the service. */
export async function loadChoices() {
  const [agents, rules] = await Promise.all([api.agents(), api.rules()]);
  return { agents, presets: rules.presets };
}

/** The first view: a new game, and the way back to the last one. */
export async function startView(main) {
  const last = load("last");
  const card = h("section", { class: "panel start" }, h("h1", { text: "A new game" }), h("p", { class: "lead", text: "Empty your stock first. Build the four shared piles from 1 to 12; a wild (S) counts as any card. Ask for a hint whenever you like." }));
  if (last) card.append(h("p", {}, h("a", { class: "button", href: `#game/${last}`, text: "Go on with your last game" })));
  main.replaceChildren(card);
  const fill = async () => {
    try {
      const choices = await loadChoices();
      if (!card.isConnected) return;
      card.append(newGameForm(choices, (view) => { location.hash = `game/${view.id}`; }));
      alarm(null);
    } catch (fault) {
      if (!card.isConnected) return;
      alarm(fault.status === 0 ? "The service does not answer. Is it running?" : fault.message, [["Try again", fill]]);
    }
  };
  await fill();
}

