/**
 * Why tests were skipped and how to run them. A reason is what `context.skip()` was given, or what stands at the end
 * of the title of a suite that is skipped whole: `title (reason)` or `title: reason`.
 */

/** The first row that matches gives the command or the step. A reason that names its own needs no row. */
const HOW_TO_RUN = [
  [/npm run /, undefined],
  [/; set [A-Z_]+/, undefined],
  [/not in the history/, "git fetch --unshallow"],
  [/needs containerd/, "as root: apt-get install containerd runc buildah debootstrap"],
  [/needs root/, "run as root: sudo npm test"],
  [/cannot read this checkout/, "clone it to where every user can read it"],
  [/TEST_KUBECONFIG/, "TEST_KUBECONFIG=FILE npm test -- test/contract"],
  [/kubectl of/, "connect the machine to its package source, then node tools/newer-kubectl.mjs"],
  [/kubectl [\d.]+ has no/, "nothing to do: a newer kubectl runs it"],
  [/no kubectl|needs kubectl/, "apt-get install kubernetes-client"],
  [/needs helm/, "put helm on the PATH"],
  [/needs etcd/, "apt-get install etcd-server"],
  [/needs iptables/, "apt-get install iptables"],
  [/needs clang/, "apt-get install clang"],
  [/needs cpio/, "apt-get install cpio"],
  [/needs chromium/, "apt-get install chromium"],
  [/needs promtool/, "apt-get install prometheus"],
  [/needs openssl/, "apt-get install openssl"],
  [/needs nsenter/, "apt-get install util-linux"],
  [/nftables/, "apt-get install nftables"],
  [/Linux/, "run on Linux"],
  [/kernel|BPF|cgroup|groups of processes|file system/, "run on a machine whose kernel has it: docs/guide/kernels.md"],
];

export function reasonOf(test) {
  const { note } = test.result();
  if (note) return note;
  if (hasFailedAbove(test)) return "a hook of the suite failed before it";
  const titles = titlesOf(test);
  const inTitles = titles.map((title) => /\((.+)\)$/.exec(title)?.[1] ?? /: (.+)$/.exec(title)?.[1]);
  const isKnown = (reason) => reason !== undefined && HOW_TO_RUN.some(([pattern]) => pattern.test(reason));
  const reason = [...inTitles, ...titles].find(isKnown) ?? inTitles.find(Boolean);
  // The product says it in the middle of a sentence of its own.
  return reason?.replace(/^that needs/, "needs") ?? `marked as skipped: ${test.fullName}`;
}

export function howToRun(reason) {
  return HOW_TO_RUN.find(([pattern]) => pattern.test(reason))?.[1];
}

/** One line per reason, the most frequent first. */
export function skipLines(skips) {
  const lines = [...skips].sort(([, a], [, b]) => b.tests - a.tests);
  return lines.map(([reason, { tests, files }]) => {
    const how = howToRun(reason);
    const where = files.size === 1 ? [...files][0] : `${files.size} files`;
    return `skipped ${tests}: ${reason}${how ? ` (${how})` : ""} [${where}]`;
  });
}

/** Titles of the suites that are skipped, from the outermost, and of the test. Vitest also skips a suite of which all tests are skipped. */
function titlesOf(test) {
  const titles = [test.name];
  for (let at = test.parent; at?.type === "suite"; at = at.parent)
    if (at.options?.mode === "skip") titles.unshift(at.name);
  return titles;
}

function hasFailedAbove(test) {
  for (let at = test.parent; at; at = at.parent) if (at.errors?.().length > 0) return true;
  return false;
}
