// Words that the field has a better word for, in what people read: texts of the programs, documents, names of files and of exports.
import { stringsOf } from "./source-strings.mjs";

/** What to say instead, and how the replaced words look in a sentence. Order matters: the first that matches is reported. */
const IN_TEXT = [
  ["(default: x)", /\bunless (?:told|said|asked)\b|\bwhere it does not show\b/i],
  ["notify, report, log, record or emit", /\b(?:told|tells?|telling)\b/i],
  [
    "the actor's name: kube-proxy, the agent, the user",
    /\b(?:(?:no|some|any|every)(?:body|one|-one)|no one|whoever|whomever|whosever)\b/i,
  ],
  ["again", /\banew\b/i],
  ["next to, with, in addition to", /\bbeside\b/i],
  ["rollback watchdog", /\bdead[- ]?man\b/i],
  ["switchover", /\bhand-?overs?\b|\b(?:hand(?:s|ed|ing)?|change[sd]?) (?:over\b|hands\b)/i],
  ["test, scenario or lab", /\bstor(?:y|ies)\b/i],
  ["revert, roll back, or drift", /\b(?:put(?:s|ting)? back|(?:takes?|taken|took|taking) back|way back)\b/i],
  ["skipped: already done", /\balready so\b/i],
  ["simulated node", /\bpaper nodes?\b|\bon paper\b/i],
  ["platform profile", /\bpersonalit(?:y|ies)\b/i],
  ["path", /(?<!\b(?:both|all|other|many|few|two|no|these|those|some|more|in) )\bways\b(?! (?:to|of|in|out)\b)/i],
  ["verdict, evaluate, validate", /\bjudge[sd]?\b|\bjudging\b/i],
  ["compatibility, replacement", /\bstand-ins?\b|\bin (?:the|its) \w+'s stead\b/i],
  ["healthy, ready", /\b(?:is|are) well\b|\blooks? after\b/i],
  ["reconcile", /\bputs? right\b/i],
  ["desired", /\b(?:un)?wanted\b/i],
  ["watch, list, receive", /\b(?:hears?|heard|hearing)\b/i],
  ["nftables, or BPF", /\bstandard (?:data )?planes?\b/i],
  ["kube-proxy", /\bservice prox(?:y|ies)\b/i],
  ["conntrack entry", /\b(?:old|idle|known|established) flows?\b|\bthe kernel carries\b/i],
  ["hairpin, loop, reverse NAT", /\bgo(?:es)? round\b|\bleads? back\b/i],
];

/** Of the project itself, which only its documents speak of: a node may well have no room for a pod. */
const IN_DOCUMENTS = [
  ["module, package or layer", /\b(?:rooms?|houses?|floors?)\b/i],
  ["DESIGN.md, design notes", /\bcards?\b/i],
  ["invariant, guarantee", /\bpromise[sd]?\b/i],
];

/** In names, words stand alone: `tellOldFlows`, `paper-node.ts`. */
const IN_NAMES = [
  ["notify, report, emit", /^(?:tell|tells|told|telling)$/],
  ["the actor", /^(?:nobody|somebody|anybody|everybody|whoever)$/],
  ["again", /^anew$/],
  ["with", /^beside$/],
  ["rollback watchdog", /^dead man$/],
  ["switchover", /^(?:handover|hand over)$/],
  ["test, scenario or lab", /^(?:story|stories)$/],
  ["revert, roll back, drift", /^(?:put back|take back|taken back)$/],
  ["simulated", /^paper$/],
  ["platform profile", /^(?:personality|personalities)$/],
  ["path", /^ways$/],
  ["labeled endpoint", /^things?$/],
  ["context, dependencies", /^(?:hands|ground|world)$/],
  ["verdict, evaluate, validate", /^(?:judge|judged|judging)$/],
  ["compatibility, replacement", /^(?:stand in|stead)$/],
  ["periodic tasks", /^(?:chores?|upkeep)$/],
  ["module, package, layer", /^(?:house|room|card)$/],
  ["desired", /^(?:wanted|unwanted|unwant)$/],
  ["affinity, allocation, handle", /^(?:books?|block claims?|address claims?)$/],
];

/** Only flow logs have flows; what a data plane tracks is a conntrack entry or a connection. Files of flow logs have the word in their path. */
const FLOW = ["conntrack entry, connection, or flow log", /^flows?$/];
const OF_FLOW_LOGS = /^(?:flow|flows) (?:logs?|ui|resources?|problems?)$/;

/** Where a replaced word is right or has to stay, and why. */
const ALLOWED = [
  {
    path: /./,
    text: /\b(?:dead-man\.json|DEAD_MAN_SECONDS)\b/,
    why: "names on disk and in pods, which upgrades take over",
  },
  {
    path: /\bnat-keepalive\.ts$|\bkeep-table\.ts$/,
    text: /^(?:belongs to nobody|held back for a moment)$/,
    why: "comments in the kernel's tables",
  },
  { path: /./, text: /^HANDOVER_/, why: "codes of errors are stable" },
  {
    path: /^src\/(?:agent\/admin|cli\/commands\/node\/vendor-node)\.ts$/,
    text: /^(?:hand-over|dead-man)$/,
    why: "earlier names that commands still accept",
  },
  {
    path: /^docs\/guide\/(?:concepts|kube-proxy-replacement)\.md$/,
    text: /\bservice proxy\b/,
    why: "explains the word in names of the specification",
  },
  {
    path: /^src\/procedures\/fingerprint\.ts$/,
    text: /^service proxy$/,
    why: "the key of a fact in saved plans",
  },
  { path: /\/proxy(?:\.run)?\.ts$/, text: /^nobody serves$/, why: "a value of `vendorctl proxy status -o json`" },
];

/** Texts of others, records of the past, and this list. */
const UNCHECKED =
  /\.gen\.|^LICENSE$|^CHANGELOG\.md$|^(?:tools|.*\/testdata)\/|^charts\/|^manifests\/|^package(?:-lock)?\.json$/;
const TEST_CODE = /\.(?:test|fixture)\.[cm]?[jt]s$|^(?:test|bench)\/|\/testing\/|\/fake(?:-[^/]*\.ts|\/)/;

/**
 * Every replaced word, one line each.
 * @param {Map<string, string>} files text of each file by its path from the root, with forward slashes
 */
export function vocabularyProblems(files) {
  return [...files].flatMap(([path, text]) => {
    if (UNCHECKED.test(path)) return [];
    return [...fileNameProblems(path), ...textProblems(path, text), ...exportProblems(path, text)];
  });
}

function fileNameProblems(path) {
  const found = nameProblem(path.replace(/\.[\w.]+$/, "").split(/[/_.-]/));
  return found ? [`${path}: the name says "${found.word}": ${found.use}`] : [];
}

function exportProblems(path, text) {
  if (!/\.[cm]?[jt]s$/.test(path)) return [];
  const exported = text.matchAll(
    /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
  );
  return [...exported].flatMap((match) => {
    const words = wordsOfName(match[1]);
    const found = nameProblem(words) ?? flowProblem(path, words);
    return found ? [`${path}:${lineAt(text, match.index)}: ${match[1]} says "${found.word}": ${found.use}`] : [];
  });
}

function textProblems(path, text) {
  if (path.endsWith(".md")) return proseOf(text).flatMap((prose) => inText(path, prose, [...IN_TEXT, ...IN_DOCUMENTS]));
  if (!/^(?:src|ui)\/.*\.tsx?$/.test(path) || TEST_CODE.test(path)) return [];
  return stringsOf(text)
    .filter((literal) => isForPeople(literal.text))
    .flatMap((literal) => inText(path, literal, IN_TEXT));
}

/** Single words are keys and values of programs; what has a space, or is two words in one, people read. */
function isForPeople(text) {
  return /\s/.test(text) || /^[a-z]+(?:-[a-z]+)+$/.test(text);
}

function inText(path, { line, text }, terms) {
  for (const [use, pattern] of terms) {
    const match = pattern.exec(text);
    if (match && !isAllowed(path, text)) return [`${path}:${line}: "${match[0]}" in "${brief(text)}": ${use}`];
  }
  return [];
}

/** A document without its code: fenced blocks, and what is in backticks. */
function proseOf(text) {
  let fenced = false;
  return text.split("\n").flatMap((line, index) => {
    if (/^\s*```/.test(line)) fenced = !fenced;
    const prose = line.replace(/`[^`]*`/g, "``").replace(/\]\([^)]*\)/g, "]()");
    return fenced || /^\s*```/.test(line) ? [] : [{ line: index + 1, text: prose }];
  });
}

function nameProblem(words) {
  const lower = words.map((word) => word.toLowerCase());
  const pairs = lower.slice(1).map((word, at) => `${lower[at]} ${word}`);
  for (const word of [...lower, ...pairs]) {
    const found = IN_NAMES.find(([, pattern]) => pattern.test(word));
    if (found) return { word, use: found[0] };
  }
  return undefined;
}

function flowProblem(path, words) {
  if (/\bflows?\b/.test(path)) return undefined;
  const [use, pattern] = FLOW;
  const lower = words.map((word) => word.toLowerCase());
  const at = lower.findIndex((word, index) => pattern.test(word) && !OF_FLOW_LOGS.test(`${word} ${lower[index + 1]}`));
  return at === -1 ? undefined : { word: lower[at], use };
}

/** `tellOldFlows`, `AGENT_SAYS`: tell old flows, agent says. */
function wordsOfName(name) {
  return name.split(/_|(?<=[a-z0-9])(?=[A-Z])/).filter((word) => word !== "");
}

function isAllowed(path, text) {
  return ALLOWED.some((one) => one.path.test(path) && one.text.test(text));
}

function brief(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

function lineAt(text, index) {
  return text.slice(0, index).split("\n").length;
}
