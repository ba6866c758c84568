// A finished game looked back on: the chances as they went, and every decision beside the best one.

import * as api from "./api.js";
import { agentName, listed, moveText } from "./cards.js";
import { alarm, announce, button, field, h, select, svg } from "./dom.js";
import { percent } from "./hint.js";

const WORDS = { best: "best", tie: "as good", inaccuracy: "inaccuracy", mistake: "mistake", blunder: "blunder" };
const WORST = ["blunder", "mistake", "inaccuracy"];
const LINES = 5; // sides of a game get a colour and a dash each
const HEIGHT = 240;

export async function open(main, id) {
  const root = h("section", { class: "panel review" }, h("h1", { text: "The game reviewed" }), h("p", { class: "lead", text: "Every decision is judged from what its player saw at that moment…" }));
  main.replaceChildren(root);
  const page = new Review(root, id);
  await page.load();
  return page;
}

class Review {
  constructor(root, id) {
    this.root = root;
    this.id = id;
    this.all = false;
  }

  async load() {
    try {
      const record = await api.record(this.id);
      const agents = record.agents ?? [];
      this.names = agents.map((agent, seat) => {
        if (agent === "human") return `Player ${seat + 1}`;
        return agents.filter((other) => other === agent).length > 1 ? `${agentName(agent)} (${seat + 1})` : agentName(agent);
      });
      const people = agents.filter((agent) => agent === "human").length;
      if (people === 1) this.names[record.agents.indexOf("human")] = "You";
      this.judges ??= (await api.agents()).agents.filter(({ players, teams }) => [null, undefined, record.rules.players].includes(players) && [null, undefined, record.rules.teams].includes(teams));
      this.analysis = await api.analyse({ record, ...(this.judge ? { agent: this.judge } : {}) }, (done, total) => this.progress(done, total));
      this.you = people === 1 ? record.agents.indexOf("human") : null;
      if (!this.root.isConnected) return;
      alarm(null);
      this.draw();
    } catch (fault) {
      if (!this.root.isConnected) return;
      const back = ["Back to the game", () => { location.hash = `game/${this.id}`; }];
      const again = ["Try again", () => this.load()];
      if (fault.status === 0) alarm("The service does not answer.", [again]);
      else if (fault.status === 404) alarm("There is no game at this address.", [["New game", () => { location.hash = ""; }]]);
      else if (fault.kind === "not-over") alarm("A game can be reviewed once it is over.", [back]);
      else alarm(`The review cannot be made: ${fault.message}`, [again, back]);
    }
  }

  /** A review in the background: how far it has come. */
  progress(done, total) {
    if (!this.root.isConnected) return;
    const bar = h("progress", { max: total, value: done, "aria-label": "Decisions judged" });
    this.root.querySelector(".lead")?.replaceChildren(`${done} of ${total} decisions are judged… `, bar);
  }

  /** Have another agent judge. */
  async judgeBy(name) {
    this.judge = name;
    this.root.querySelector(".lead").textContent = "Every decision is judged anew…";
    announce("Every decision is judged anew.");
    await this.load();
    this.root.querySelector("[data-key='review:judge']")?.focus();
  }

  redrawAll() {
    if (this.analysis) this.draw();
  }

  sideName(side) {
    const { teams } = this.analysis.rules;
    return listed(this.names.filter((_, seat) => (teams ? seat % teams : seat) === side));
  }

  draw() {
    const { analysis } = this;
    const estimated = analysis.decisions.some((decision) => decision.win);
    const { result, agent } = analysis;
    const ended = result ? (result.winner === null ? "Nobody won." : `${this.sideName(result.winner)} won ${Math.max(...result.scores)} points.`) : "";
    this.root.replaceChildren(
      h("h1", { text: "The game reviewed" }),
      h("p", { class: "lead" }, `${ended} `, agent ? `Judged by ${agentName(agent.name)}.` : ""),
      ...analysis.warnings.map((text) => h("p", { class: "note", text })),
      estimated ? this.chart() : h("p", { class: "note", text: "This agent gives no probabilities, so there is no chart; its own choice stands beside each move." }),
      this.totals(),
      this.decisions(),
      this.judgeChoice(),
      h("div", { class: "actions" }, h("a", { class: "button", href: `#game/${this.id}`, text: "Back to the table" }), button("Save the record", () => this.save())),
    );
  }

  judgeChoice() {
    const names = this.judges.map(({ name, costly }) => [name, `${agentName(name)}${costly ? ", which takes minutes" : ""}`]);
    const choice = select([["", "the service's own"], ...names], this.judge ?? "", { "data-key": "review:judge", onchange: () => this.judgeBy(choice.value || null) });
    return h("div", { class: "columns" }, field("Judged by", choice));
  }

  /** Each side's probability to win before every decision, and how it ended. */
  chart() {
    // Drawn for the width there is, so that the text keeps its size.
    const WIDTH = Math.max(240, this.root.clientWidth - 90);
    const points = this.analysis.decisions.filter((decision) => decision.win);
    const sides = points[0].win.length;
    // With two sides one line tells both.
    const shown = sides === 2 ? [this.you === null ? 0 : this.you % 2] : Array.from({ length: sides }, (_, side) => side);
    const x = (i) => (points.length < 2 ? 0 : (i / (points.length - 1)) * WIDTH);
    const y = (p) => HEIGHT - p * HEIGHT;
    const drawing = svg("svg", { viewBox: `-44 -10 ${WIDTH + 56} ${HEIGHT + 34}`, role: "img", class: "chart", "aria-label": this.chartText(points, shown) });
    for (const p of [0, 0.25, 0.5, 0.75, 1]) {
      const label = svg("text", { x: -8, y: y(p) + 4, "text-anchor": "end" });
      label.textContent = `${100 * p}%`;
      drawing.append(svg("line", { x1: 0, x2: WIDTH, y1: y(p), y2: y(p), class: p === 0.5 ? "grid half" : "grid" }), label);
    }
    for (const side of shown) {
      const path = points.map((decision, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(decision.win[side] ?? 0.5).toFixed(1)}`).join("");
      drawing.append(svg("path", { d: path, class: `curve side-${side % (LINES + 1)}` }));
    }
    points.forEach((decision, i) => {
      const side = this.analysis.rules.teams ? decision.player % this.analysis.rules.teams : decision.player;
      if (!["mistake", "blunder"].includes(decision.verdict)) return;
      const at = decision.win[shown.includes(side) ? side : shown[0]] ?? 0.5;
      const dot = svg("circle", { cx: x(i), cy: y(at), r: 5, class: `dot ${decision.verdict} ${shown.includes(side) ? "" : "theirs"}` });
      const title = svg("title");
      title.textContent = `${this.names[decision.player]}: ${moveText(decision.played.move)}, ${percent(decision.lost)} lost`;
      dot.append(title);
      drawing.append(dot);
    });
    const caption = svg("text", { x: WIDTH, y: HEIGHT + 20, "text-anchor": "end" });
    caption.textContent = `${points.length} decisions`;
    drawing.append(caption);
    const legend = ["mistake", "blunder"].filter((verdict) => points.some((decision) => decision.verdict === verdict));
    const key = legend.length > 0 && h("ul", { class: "legend" }, legend.map((verdict) => h("li", {}, svg("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, class: "key", "aria-hidden": "true" }, svg("circle", { r: 5, class: `dot ${verdict}` })), verdict)));
    return h("figure", {}, h("figcaption", {}, h("h2", { text: sides === 2 ? `Chance to win: ${this.sideName(shown[0])}` : "Chance to win" }), sides > 2 && h("ul", { class: "legend" }, shown.map((side) => h("li", {}, h("span", { class: `swatch side-${side % (LINES + 1)}`, "aria-hidden": "true" }), this.sideName(side))))), drawing, key);
  }

  chartText(points, shown) {
    return shown.map((side) => {
      const values = points.map((decision) => decision.win[side] ?? 0.5);
      return `${this.sideName(side)}: ${percent(values[0], 0)} at the start, ${percent(Math.min(...values), 0)} at least, ${percent(Math.max(...values), 0)} at most, ${percent(values.at(-1), 0)} before the last decision`;
    }).join(". ");
  }

  totals() {
    const { players, sides } = this.analysis;
    const number = (value) => (value === null || value === undefined ? "–" : `${value < -0.0005 ? "−" : ""}${Math.abs(100 * value).toFixed(1)}`);
    const rows = [
      ["Moves", (player) => player.decisions],
      ["Best or as good", (player) => (player.agreement === null ? "–" : percent(player.agreement, 0))],
      ["Inaccuracies", (player) => player.verdicts.inaccuracy ?? 0],
      ["Mistakes", (player) => player.verdicts.mistake ?? 0],
      ["Blunders", (player) => player.verdicts.blunder ?? 0],
      ["Points lost", (player) => number(player.lost)],
      ["Luck", (player) => number(sides.find((entry) => entry.side === player.side)?.luck)],
    ];
    return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Players compared" }, h("table", { class: "sheet-table wide" },
      h("caption", { text: "Points are percentage points of the chance to win. Luck is what the cards drawn were worth." }),
      h("thead", {}, h("tr", {}, h("td"), players.map((player) => h("th", { scope: "col", text: this.names[player.player] })))),
      h("tbody", {}, rows.map(([name, cell]) => h("tr", {}, h("th", { scope: "row", text: name }), players.map((player) => h("td", { text: cell(player) })))))));
  }

  decisions() {
    const ranked = this.analysis.decisions
      .filter((decision) => decision.choices > 1 && (this.all || WORST.includes(decision.verdict)))
      .filter((decision) => this.all || this.you === null || decision.player === this.you);
    if (!this.all) ranked.sort((a, b) => (b.lost ?? 0) - (a.lost ?? 0));
    const shown = this.all ? ranked : ranked.slice(0, 12);
    const toggle = button(this.all ? "Only what cost most" : "All decisions", () => { this.all = !this.all; this.draw(); this.root.querySelector("[data-key='review:all']").focus(); }, { "data-key": "review:all" });
    return h("section", { "aria-labelledby": "decisions-title" },
      h("div", { class: "panel-head" }, h("h2", { id: "decisions-title", text: this.all ? "All decisions" : "What cost most" }), toggle),
      shown.length ? h("ol", { class: "moves" }, shown.map((decision) => this.decision(decision))) : h("p", { class: "note", text: "Nothing worth a word." }));
  }

  decision(decision) {
    const lost = decision.lost === null || decision.lost < 0.0005 ? "" : ` (−${(100 * decision.lost).toFixed(1)} points)`;
    const same = decision.verdict === "best";
    return h("li", {},
      h("div", { class: "text" },
        h("div", { class: "head" }, h("strong", { text: `${this.names[decision.player]}, turn ${decision.turn + 1}: ${moveText(decision.played.move)}` }), decision.verdict && h("span", { class: `verdict ${decision.verdict}`, text: `${WORDS[decision.verdict]}${lost}` })),
        !same && h("p", { class: "line", text: `Better: ${decision.line.map((step) => moveText(step.move)).join("; ") || moveText(decision.best.move)}.` })));
  }

  async save() {
    const record = await api.record(this.id);
    const file = new Blob([`${JSON.stringify(record)}\n`], { type: "application/json" });
    const link = h("a", { href: URL.createObjectURL(file), download: `skipbo-${this.id.slice(0, 8)}.jsonl` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
