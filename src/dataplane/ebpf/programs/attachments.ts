import type { BpfLink, BpfPort, BpfProgram, Direction } from "../../../kernel/bpf/bpf-port.ts";
import type { NetlinkPort } from "../../../kernel/netlink/netlink-port.ts";
import type { Netns, NetnsPort } from "../../../kernel/netns/netns-port.ts";

/** Programs at interfaces. They stay when the process goes, and are found again by the next. */
export interface Attachments {
  /** Puts the program at the hook, or in place of ours that is there. */
  attach(ifindex: number, direction: Direction, program: BpfProgram): Promise<void>;
  detach(ifindex: number, direction: Direction): Promise<void>;
  /** Every place one of ours is at, from this life or an earlier one. */
  places(): { ifindex: number; direction: Direction }[];
  /** Lets go without detaching. */
  close(): Promise<void>;
}

const DIRECTIONS = ["ingress", "egress"] as const;

/** The first priority, as others use too; with a handle of our own, so that we never replace a foreign filter. */
const FILTER_HANDLE = 0x5eed;

/** By links pinned below our directory (kernels from 6.6). A link whose interface is gone is only a pin, and is removed. */
export class TcxAttachments implements Attachments {
  private readonly bpf: BpfPort;
  private readonly directory: string;
  private readonly inside: { netns: Netns; port: NetnsPort } | undefined;
  private readonly links = new Map<string, BpfLink>();

  private constructor(bpf: BpfPort, directory: string, inside?: { netns: Netns; port: NetnsPort }) {
    this.bpf = bpf;
    this.directory = directory;
    this.inside = inside;
  }

  static async open(
    bpf: BpfPort,
    directory: string,
    inside?: { netns: Netns; port: NetnsPort },
  ): Promise<TcxAttachments> {
    const attachments = new TcxAttachments(bpf, directory, inside);
    bpf.makePinDirectory(directory);
    for (const pin of bpf.pins(directory)) {
      const link = bpf.openLink(`${directory}/${pin}`);
      if (link.info().ifindex) attachments.links.set(pin, link);
      else await attachments.drop(pin, link);
    }
    return attachments;
  }

  async attach(ifindex: number, direction: Direction, program: BpfProgram): Promise<void> {
    const pin = pinOf(ifindex, direction);
    const there = this.links.get(pin);
    if (there?.info().ifindex === ifindex) {
      there.update(program);
      return;
    }
    // The number was another interface's before.
    if (there) await this.drop(pin, there);
    const link = await this.create(program, ifindex, direction);
    link.pin(`${this.directory}/${pin}`);
    this.links.set(pin, link);
  }

  async detach(ifindex: number, direction: Direction): Promise<void> {
    const pin = pinOf(ifindex, direction);
    const link = this.links.get(pin);
    if (link) await this.drop(pin, link);
  }

  places(): { ifindex: number; direction: Direction }[] {
    return [...this.links.keys()].sort().map(placeOf);
  }

  async close(): Promise<void> {
    for (const link of this.links.values()) await link.close();
    this.links.clear();
  }

  private async create(program: BpfProgram, ifindex: number, direction: Direction): Promise<BpfLink> {
    if (!this.inside) return this.bpf.attachTcx(program, ifindex, direction);
    const { port, netns } = this.inside;
    return port.run(netns, () => this.bpf.attachTcxHere(program, ifindex, direction));
  }

  private async drop(pin: string, link: BpfLink): Promise<void> {
    this.bpf.unpin(`${this.directory}/${pin}`);
    this.links.delete(pin);
    await link.close();
  }
}

/** By a filter of the traffic classifier, for kernels without links there. The kernel keeps it with the interface. */
export class ClsactAttachments implements Attachments {
  private readonly netlink: NetlinkPort;
  private readonly name: string;

  constructor(netlink: NetlinkPort, name: string) {
    this.netlink = netlink;
    this.name = name;
  }

  async attach(ifindex: number, direction: Direction, program: BpfProgram): Promise<void> {
    this.netlink.addClsact(ifindex);
    this.netlink.replaceFilter({ device: ifindex, direction, name: this.name, program, handle: FILTER_HANDLE });
  }

  async detach(ifindex: number, direction: Direction): Promise<void> {
    const own = this.own(ifindex, direction);
    for (const filter of own) this.netlink.deleteFilter(filter);
    // The qdisc is removed with the last filter, ours or foreign.
    const empty = DIRECTIONS.every((side) => this.netlink.filters(ifindex, side).length === 0);
    if (own.length > 0 && empty) this.netlink.deleteClsact(ifindex);
  }

  places(): { ifindex: number; direction: Direction }[] {
    const links = this.netlink.links();
    return links.flatMap(({ index }) =>
      DIRECTIONS.filter((direction) => this.own(index, direction).length > 0).map((direction) => ({
        ifindex: index,
        direction,
      })),
    );
  }

  async close(): Promise<void> {}

  private own(ifindex: number, direction: Direction) {
    return this.netlink.filters(ifindex, direction).filter(({ name }) => name === this.name);
  }
}

function pinOf(ifindex: number, direction: Direction): string {
  return `${ifindex}_${direction}`;
}

function placeOf(pin: string): { ifindex: number; direction: Direction } {
  const [ifindex, direction] = pin.split("_");
  return { ifindex: Number(ifindex), direction: direction as Direction };
}
