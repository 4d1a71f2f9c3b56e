/**
 * Why tests were skipped and how to run them. A reason is what `context.skip()` was given, or what stands at the end
 * of the title of a suite that is skipped whole: `title (reason)` or `title: reason`.
 */

const NAMES_ITS_SETTING = /; set [A-Z_]+/;

/** The first row that matches gives the command or the step. A reason that names its own needs no row. */
const HOW_TO_RUN = [
  [/npm run /, undefined],
  [NAMES_ITS_SETTING, undefined],
  [/needs root/, "run as root: sudo npm test"],
  [/TEST_KUBECONFIG/, "TEST_KUBECONFIG=FILE npm test -- test/contract"],
  [/kubectl of/, "connect the machine to its package source, then node tools/newer-kubectl.mjs"],
  [/kubectl [\d.]+ has no/, "nothing to do: a newer kubectl runs it"],
  [/no kubectl|needs kubectl/, "apt-get install kubernetes-client"],
  [/needs etcd/, "apt-get install etcd-server"],
  [/needs iptables/, "apt-get install iptables"],
  [/needs clang/, "apt-get install clang"],
  [/needs cpio/, "apt-get install cpio"],
  [/needs openssl/, "apt-get install openssl"],
  [/needs nsenter/, "apt-get install util-linux"],
  [/nftables/, "apt-get install nftables"],
  [/Linux/, "run on Linux"],
  [/kernel|BPF|cgroup|groups of processes|file system/, "run on a machine whose kernel has it: docs/guide/kernels.md"],
];

export function reasonOf(test) {
  return test.result().note ?? reasonInTitle(skippedSuite(test)) ?? `marked as skipped: ${test.fullName}`;
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

/** The outermost suite that is skipped: its title has the reason for all that is in it. */
function skippedSuite(test) {
  let found = test;
  for (let at = test.parent; at?.type === "suite"; at = at.parent) if (at.options?.mode === "skip") found = at;
  return found;
}

function reasonInTitle({ name }) {
  const reason = /\((.+)\)$/.exec(name)?.[1] ?? /: (.+)$/.exec(name)?.[1];
  return reason ?? (NAMES_ITS_SETTING.test(name) ? name : undefined);
}
