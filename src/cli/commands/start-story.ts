import type { ClusterCommands } from "../cluster-commands.ts";
import { errors } from "../errors.ts";
import type { Session } from "../session.ts";
import { runVendorctl } from "../vendorctl.ts";

/** In a command: where the files of the release before this one are. */
const RELEASE_BEFORE = "RELEASE-BEFORE";
const DEMO = "demo";
const OLD = "demo-old";

/** One cluster of the story: how it is made, and what is done on it, as anybody would type it. */
interface Chapter {
  name: string;
  intro: string;
  up: readonly string[];
  commands: readonly (readonly string[])[];
  /** Shown instead when the cluster is there from a former start. */
  again: readonly (readonly string[])[];
}

const CHAPTERS: readonly Chapter[] = [
  {
    name: DEMO,
    intro:
      "A new cluster: look before installing, install the release before this one with eBPF, see who serves services now; then to the standard data plane and back, and an upgrade to this release, with traffic that is measured all the while. The release before is played by this build under its version: agents are really replaced one after another.",
    up: ["--kind", "generic", "--nodes", "3"],
    commands: [
      ["check", "--pre"],
      ["install", "-y", "--manifest-url", RELEASE_BEFORE],
      ["status"],
      ["proxy", "status"],
      ["switch", "--to", "standard", "-y"],
      ["switch", "--to", "BPF", "-y"],
      ["proxy", "status"],
      ["upgrade", "-y", "--canary-traffic", "auto"],
      ["version"],
    ],
    again: [["status"], ["proxy", "status"], ["version"]],
  },
  {
    name: OLD,
    intro:
      "A cluster as v3.27 left it. Things in it are owned by v3 resources, whose UIDs change at v3.28: an upgrade by hand loses them.",
    up: ["--kind", "generic", "--nodes", "2", "--installed", "v3.27", "--method", "operator"],
    commands: [["check", "--for", "upgrade"], ["upgrade", "-y"], ["version"], ["history"]],
    again: [["version"], ["history"]],
  },
];

/** `npm start`: the product's story on embedded clusters, told with the commands it is made of. Run again, it shows how things stand. */
export async function startStory(session: Session, { paper }: { paper?: true }): Promise<void> {
  const commands = await session.loadClusterCommands();
  for (const chapter of CHAPTERS) {
    await tell(session, commands, { ...chapter, up: [...chapter.up, ...(paper ? ["--paper"] : [])] });
  }
  session.out(WHAT_TO_TRY);
}

async function tell(session: Session, commands: ClusterCommands, chapter: Chapter): Promise<void> {
  const { name, intro } = chapter;
  session.out(`\n${intro}\n`);
  const running = (await commands.list()).some((cluster) => cluster.name === name && cluster.state === "running");
  if (running) session.out(`the cluster ${name} is running already\n`);
  else await say(session, ["cluster", "up", "--name", name, ...chapter.up, "--detach"]);
  const kubeconfig = await commands.kubeconfig({ name });
  const { url } = await commands.releaseBefore();
  const told = (words: readonly string[]) => words.map((word) => (word === RELEASE_BEFORE ? url : word));
  for (const words of running ? chapter.again : chapter.commands) await say(session, told(words), kubeconfig);
}

/** Types one command and runs it as if it had been typed. */
async function say(session: Session, words: readonly string[], kubeconfig?: string): Promise<void> {
  if (session.signal.aborted) throw errors.INTERRUPTED();
  session.out(`\n$ vendorctl ${words.join(" ")}\n`);
  const where = kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig];
  const { flags: _flags, argv: _argv, ...world } = session;
  const exitCode = await runVendorctl([...words, ...where], world);
  if (exitCode !== 0) throw errors.STORY_STOPPED(words.join(" "), exitCode);
}

const WHAT_TO_TRY = `
As root the nodes of the new cluster are real: network namespaces with real agents, programs and packets. Elsewhere, and for versions that are
only played, they are paper: pods run by rule, no packet flows, everything else is the real thing.

Try it, on the new cluster:
  export KUBECONFIG=$(./bin/vendorctl cluster kubeconfig --name ${DEMO})
  ./bin/vendorctl switch --to standard --no-waves   # all nodes at once
  ./bin/vendorctl rollback                    # takes the last run back, step by step
  ./bin/vendorctl plan uninstall
  kubectl get vendorstatus -w
On the upgraded one:
  export KUBECONFIG=$(./bin/vendorctl cluster kubeconfig --name ${OLD})
  kubectl get configmaps -n shop -o yaml      # owned by v3 resources, and still there
  ./bin/vendorctl flows enable --ui
Other platforms, older versions:
  ./bin/vendorctl cluster up --help
Stop it:
  npm stop
`;
