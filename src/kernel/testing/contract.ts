/** What every side of the kernel ports promises. Runs against the fake always, and against the real kernel where there are rights for it. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe } from "vitest";
import type { Kernel } from "../kernel.ts";
import type { Netns } from "../netns/netns-port.ts";
import { bpfContract } from "./bpf-contract.ts";
import { conntrackContract } from "./conntrack-contract.ts";
import { framesContract } from "./frames-contract.ts";
import { netlinkContract } from "./netlink-contract.ts";
import { nftContract } from "./nft-contract.ts";

/** A kernel and a corner of it that belongs to one test alone: two namespaces and a directory for pins. */
export interface Corner {
  readonly kernel: Kernel;
  readonly here: Netns;
  readonly there: Netns;
  readonly pins: string;
}

type WhyNot = () => string | undefined;

export function kernelContract(side: string, open: () => Kernel, whyNot: WhyNot, whyNoNft: WhyNot = whyNot): void {
  describe(`the kernel ports: ${side}`, () => {
    let corner: Corner | undefined;
    beforeEach((context) => {
      const reason = whyNot();
      if (reason) context.skip(reason);
      corner = makeCorner(open());
    });
    afterEach(() => {
      if (corner) clearCorner(corner);
      corner = undefined;
    });
    const get = () => corner!;
    bpfContract(get);
    netlinkContract(get);
    nftContract(get, whyNoNft);
    conntrackContract(get);
    framesContract(get);
  });
}

let corners = 0;

/** With a file system of its own for pins: whether the machine has one, and what is in it, does not matter then. */
function makeCorner(kernel: Kernel): Corner {
  const name = `vt-${process.pid}-${++corners}`;
  const pins = `/run/${name}-pins`;
  kernel.mounts.ensure("bpf", pins);
  return { kernel, here: kernel.netns.create(`${name}-a`), there: kernel.netns.create(`${name}-b`), pins };
}

function clearCorner({ kernel, here, there, pins }: Corner): void {
  kernel.mounts.unmount(pins);
  rmSync(pins, { recursive: true, force: true });
  for (const netns of [here, there]) {
    netns.close();
    kernel.netns.delete(netns.name);
  }
}

/** Numbers as programs and maps have them. */
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
