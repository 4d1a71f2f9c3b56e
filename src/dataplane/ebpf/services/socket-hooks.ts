import type { DataplaneConfiguration } from "../../../api/resources/dataplane-configuration.ts";
import type { AttachType } from "../../../kernel/bpf/bpf-constants.ts";
import type { BpfLink } from "../../../kernel/bpf/bpf-port.ts";
import type { BpfObject, LoadOptions } from "../../../kernel/bpf/object.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import { CodedError } from "../../../kit/errors.ts";
import { objectBytes } from "../programs/objects.ts";

export interface SocketHooksOptions {
  kernel: Kernel;
  /** Everything of ours that outlives the process is below it. */
  pinDirectory: string;
  /** The group whose processes are the node's, with all below it. */
  cgroup: string;
  /** The node's network namespace, where it is not this process's: sockets of others are left alone. */
  netns?: Netns;
  /** How the other programs were loaded: same maps, same configuration. */
  load: LoadOptions;
}

const HOOKS = {
  connect4: "socket_connect4",
  connect6: "socket_connect6",
  sendmsg4: "socket_sendmsg4",
  sendmsg6: "socket_sendmsg6",
  recvmsg4: "socket_recvmsg4",
  recvmsg6: "socket_recvmsg6",
  getpeername4: "socket_getpeername4",
  getpeername6: "socket_getpeername6",
} as const satisfies Partial<Record<AttachType, string>>;

type Hook = keyof typeof HOOKS;

/** From 5.8 on. Without them an application that asks for its peer sees the backend; everything else works. */
const OPTIONAL: readonly Hook[] = ["getpeername4", "getpeername6"];

/** Answers come back by the first ones, questions go out by the last: a hook is never there before the one that undoes it. */
const ORDER: readonly Hook[] = [
  ...["recvmsg4", "recvmsg6", "getpeername4", "getpeername6"],
  ...["sendmsg4", "sendmsg6", "connect4", "connect6"],
] as Hook[];

/** Hooks that translate a question, by what is to be translated at sockets: the rest of ORDER turns answers back. */
const QUESTIONS: Record<SocketTranslation, readonly Hook[]> = {
  Enabled: ["sendmsg4", "sendmsg6", "connect4", "connect6"],
  TCP: ["connect4", "connect6"],
  Disabled: [],
};

/** Of the node's own processes: what is translated at the socket. What is not, is translated packet by packet where it leaves the node. */
export type SocketTranslation = NonNullable<DataplaneConfiguration["spec"]["bpfConnectTimeLoadBalancing"]>;

/**
 * The programs at the sockets of the node's own processes, by links that stay when the process goes and are found again by the next. They do
 * nothing until the mode says so.
 */
export class SocketHooks {
  private readonly options: SocketHooksOptions;
  private readonly directory: string;
  private readonly links = new Map<Hook, BpfLink>();
  private object: BpfObject | undefined;
  private translates: SocketTranslation | undefined;

  constructor(options: SocketHooksOptions) {
    this.options = options;
    this.directory = `${options.pinDirectory}/${SOCKET_LINKS}`;
    options.kernel.bpf.makePinDirectory(this.directory);
    for (const pin of options.kernel.bpf.pins(this.directory)) {
      this.links.set(pin as Hook, options.kernel.bpf.openLink(`${this.directory}/${pin}`));
    }
  }

  /** Puts each program at its hook, or in place of ours that is there; also where a link was lost since. Hooks whose questions are left to the packets' way go. */
  async attach(translates: SocketTranslation): Promise<void> {
    const { kernel, cgroup } = this.options;
    const group = kernel.cgroup.id(cgroup);
    if (this.translates !== translates) this.unload();
    this.object ??= this.loadObject(translates);
    this.translates = translates;
    await this.dropQuestions(QUESTIONS[translates]);
    for (const hook of ORDER) {
      const program = this.object.programs.get(HOOKS[hook]);
      if (!program || !this.isWanted(hook, translates)) continue;
      const there = this.links.get(hook);
      if (there && there.info().cgroup === group) {
        if (there.info().programId !== program.info.id) there.update(program);
        continue;
      }
      // It is at a group that is gone, or that is the node's no more.
      if (there) await this.drop(hook, there);
      const link = kernel.bpf.attachCgroup(program, cgroup, hook);
      link.pin(`${this.directory}/${hook}`);
      this.links.set(hook, link);
    }
  }

  /** The hooks that are there. */
  attached(): Hook[] {
    return [...this.links].filter(([, link]) => link.info().cgroup !== 0n).map(([hook]) => hook);
  }

  /** Lets go; what is attached stays. */
  async close(): Promise<void> {
    for (const link of this.links.values()) await link.close();
    this.links.clear();
    this.unload();
  }

  /** Takes the programs off, questions before answers. */
  async remove(): Promise<void> {
    for (const hook of [...ORDER].reverse()) {
      const link = this.links.get(hook);
      if (link) await this.drop(hook, link);
    }
    await this.close();
  }

  /** Where no question is translated, answers are only turned back for sockets that asked before: nothing is put where nothing was. */
  private isWanted(hook: Hook, translates: SocketTranslation): boolean {
    if (QUESTIONS.Enabled.includes(hook)) return QUESTIONS[translates].includes(hook);
    return translates !== "Disabled" || this.links.has(hook);
  }

  private async dropQuestions(kept: readonly Hook[]): Promise<void> {
    for (const hook of [...QUESTIONS.Enabled].reverse()) {
      const link = this.links.get(hook);
      if (link && !kept.includes(hook)) await this.drop(hook, link);
    }
  }

  private unload(): void {
    this.object?.close();
    this.object = undefined;
  }

  private loadObject(translates: SocketTranslation): BpfObject {
    const { kernel, load, netns } = this.options;
    const own = kernel.netns.cookie(netns);
    // A kernel without the netns cookie of a process can still compare with the initial namespace, which is where a node's processes are.
    const variables = {
      ...load.variables,
      ...{ netns_cookie: own ?? 0n, connects_udp: translates === "Enabled" ? 1 : 0 },
    };
    const bytes = objectBytes("socket");
    try {
      return kernel.loadObject(bytes, { ...load, variables });
    } catch (error) {
      if (!(error instanceof CodedError) || error.code === "KERNEL_NOT_PERMITTED") throw error;
      // Kernels say in different words that they do not know a hook; without the hooks they may lack they say what else is wrong.
      const needed = ORDER.filter((hook) => !OPTIONAL.includes(hook)).map((hook) => HOOKS[hook]);
      return kernel.loadObject(bytes, { ...load, variables, programs: needed });
    }
  }

  private async drop(hook: Hook, link: BpfLink): Promise<void> {
    this.options.kernel.bpf.unpin(`${this.directory}/${hook}`);
    this.links.delete(hook);
    await link.close();
  }
}

/** Where their links are pinned, below the directory of everything. */
export const SOCKET_LINKS = "socket_links";
