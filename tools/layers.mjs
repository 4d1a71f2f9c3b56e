// Holds the arrows between rooms: who may import whom, which rooms stay synchronous, who may touch the foreign-function library, where cluster kinds differ.
import { posix } from "node:path";

/** From the top down. A file may import from its own room and from rooms in rows below; nothing else. */
export const LAYERS = [
  ["main"],
  ["cli"],
  ["local"],
  ["operator", "controllers", "agent", "cni", "v3api", "flows", "procedures", "sidecar"],
  ["dataplane", "releases", "datastore", "ipam", "aggregated"],
  ["calc", "cluster", "apiserver", "kernel"],
  ["api"],
  ["kit", "gen"],
];

/** Rooms whose output may depend on their input alone: nothing to wait for, so nothing can interleave. */
const SYNCHRONOUS = [
  /^src\/calc\//,
  /^src\/operator\/render\//,
  /^src\/procedures\/plans\//,
  /^src\/local\/(?:.*\/)?(?:plan[^/]*|[^/]*-plan)\.ts$/,
];

/** The flow UI runs in a browser: the grammar of queries, shapes on the wire, and how policies are written as YAML are all that it shares. Its worker has no document. */
const PAGE = {
  shared:
    /^src\/(?:(?:flows\/query|api\/protocol)\/[^/]+|flows\/propose\/policy-text|procedures\/merge\/kubectl-yaml)\.ts$/,
  withoutDocument: /^ui\/(?:worker\/|page-worker\.ts|api\/)/,
  withDocument: /\.tsx$|^ui\/(?:page-state|palette)\.ts$/,
};

const FOREIGN_FUNCTIONS = { package: "koffi", only: "src/kernel/sys.ts" };

/**
 * Everything wrong with a set of files, one sentence each.
 * @param {Map<string, string>} files text of each file by its path from the root, with forward slashes
 */
export function layerProblems(files) {
  return [...files].flatMap(([path, source]) => {
    const code = withoutComments(source);
    return [...importProblems(path, code), ...synchronousProblems(path, code), ...kindProblems(path, code)];
  });
}

function importProblems(path, code) {
  return importsOf(code).flatMap((specifier) => {
    if (specifier === FOREIGN_FUNCTIONS.package && path !== FOREIGN_FUNCTIONS.only) {
      return [`${path}: only ${FOREIGN_FUNCTIONS.only} may import ${specifier}`];
    }
    if (!specifier.startsWith(".")) {
      const isPage = PAGE.withoutDocument.test(path) && /^(?:@?preact|uplot)/.test(specifier);
      return isPage ? [`${path}: imports ${specifier}, and a worker has no document`] : [];
    }
    const target = posix.join(posix.dirname(path), specifier);
    const problem = arrowProblem(path, target);
    return problem ? [`${path}: ${problem}`] : [];
  });
}

function arrowProblem(path, target) {
  if (path.startsWith("ui/")) return pageArrowProblem(path, target);
  const from = roomOf(path);
  // Stories in test/, tools and benches stand outside the house and may use all of it.
  if (from === undefined) return undefined;
  const isTest = isTestCode(path);
  const to = roomOf(target);
  if (to === undefined) {
    const data = target === "package.json" || (isTest && target.startsWith("test/"));
    return data ? undefined : `imports ${target}, which is outside src`;
  }
  if (!isTest && isTestCode(target)) return `imports ${target}, which is only for tests`;
  if (!isTest && isFake(target) && !isFake(path)) return `imports ${target}, a fake, which is only for tests`;
  if (from === to) return undefined;
  const [fromRow, toRow] = [rowOf(from), rowOf(to)];
  if (fromRow < 0) return `the room ${from} is not in the table of tools/layers.mjs`;
  if (toRow < 0) return `the room ${to} is not in the table of tools/layers.mjs`;
  // A neighbour may be the other half of a test: the client is tested against the server.
  const allowed = toRow > fromRow || (isTest && toRow === fromRow);
  return allowed ? undefined : `${from} must not import ${to} (${target})`;
}

function pageArrowProblem(path, target) {
  const isTest = isTestCode(path);
  if (!isTest && isTestCode(target)) return `imports ${target}, which is only for tests`;
  if (target.startsWith("ui/")) {
    const crosses = PAGE.withoutDocument.test(path) && PAGE.withDocument.test(target);
    return crosses ? `imports ${target}, and a worker has no document` : undefined;
  }
  return isTest || PAGE.shared.test(target) ? undefined : `imports ${target}, which is not for browsers`;
}

function synchronousProblems(path, code) {
  if (isTestCode(path) || !path.endsWith(".ts") || !SYNCHRONOUS.some((room) => room.test(path))) return [];
  const word = /\b(?:await|async)\b/.exec(withoutText(code));
  return word ? [`${path}: says ${word[0]}, and this room is synchronous`] : [];
}

/** What depends on the kind of cluster is a column of its tables: a comparison elsewhere is where the next kind is forgotten. */
const KIND = "(?:generic|iac|openshift|aks|eks|mke)";
const KIND_DECISION = new RegExp(
  `(?:[=!]==?\\s*|\\bcase\\s+|new Set(?:<[^>]*>)?\\(\\[\\s*)"${KIND}"|"${KIND}"\\s*[=!]==?`,
);

function kindProblems(path, code) {
  if (isTestCode(path) || !path.startsWith("src/")) return [];
  const found = KIND_DECISION.exec(code);
  return found
    ? [`${path}: decides by the kind of cluster (${found[0]}); make it a column of src/api/tables/cluster-kinds.ts`]
    : [];
}

export function importsOf(code) {
  const found = code.matchAll(/(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)(["'])([^"'\n]+)\1/g);
  return [...found].map((match) => match[2]);
}

function roomOf(path) {
  return /^src\/([^/]+?)(?:\/|\.ts$)/.exec(path)?.[1];
}

function rowOf(room) {
  return LAYERS.findIndex((row) => row.includes(room));
}

function isTestCode(path) {
  return /\.(?:test|fixture)\.ts$|^src\/[^/]+\/testing\//.test(path);
}

/** A port in memory: part of no program. */
function isFake(path) {
  return /(?:^|\/)fake(?:-[^/]+\.ts$|\/)/.test(path);
}

/** Comments go, text stays: a `//` or `/*` inside a string is not a comment. */
function withoutComments(code) {
  const token = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return code.replace(token, (text) => (text.startsWith("/") ? " " : text));
}

function withoutText(code) {
  return code.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, '""');
}
