import { createSocket, type Socket } from "node:dgram";
import { readFileSync } from "node:fs";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { patience } from "../../src/kit/testing/patience.ts";

const kernel = realKernel();
const COUNT = 20;
const PORT = 7001;
/** Of IPv4 and UDP. */
const HEADERS = 28;
/** Each came back, said once, and nobody had to cut one or put one together. */
export const ALL_CAME = { echoed: COUNT, pieces: 0 };

/**
 * Datagrams as long as the pod's MTU allows. The kernel marks those of a socket as not to be cut, until it has heard that they are too long
 * for their way.
 */
export async function echoFullSize(
  from: Netns,
  to: Netns,
  address: string,
): Promise<{ echoed: number; pieces: number }> {
  const ear = await open(to, PORT);
  ear.on("message", (bytes, sender) => ear.send(bytes, sender.port, sender.address, () => undefined));
  const mouth = await open(from, 0);
  mouth.on("error", () => undefined);
  const before = pieces(from) + pieces(to);
  const length = mtuOf(from) - HEADERS;
  let echoed = 0;
  for (let at = 0; at < COUNT; at++) {
    const said = Buffer.alloc(length, at);
    const heard = new Promise<boolean>((resolve) => {
      const late = setTimeout(() => resolve(false), patience(2_000));
      mouth.once("message", (bytes) => {
        clearTimeout(late);
        resolve(bytes.equals(said));
      });
    });
    mouth.send(said, PORT, address, () => undefined);
    if (await heard) echoed++;
  }
  mouth.close();
  ear.close();
  return { echoed, pieces: pieces(from) + pieces(to) - before };
}

async function open(netns: Netns, port: number): Promise<Socket> {
  const fd = kernel.netns.bind(netns, { kind: "datagram", address: "0.0.0.0", port });
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind({ fd }, resolve));
  return socket;
}

function mtuOf(netns: Netns): number {
  const netlink = kernel.netlink(netns);
  try {
    return netlink.link("eth0")!.mtu;
  } finally {
    netlink.close();
  }
}

/** What was cut, could not be, or had to be put together in this namespace. */
function pieces(netns: Netns): number {
  const text = kernel.netns.run(netns, () => readFileSync("/proc/thread-self/net/snmp", "utf8"));
  const [titles = [], values = []] = text
    .split("\n")
    .filter((line) => line.startsWith("Ip:"))
    .map((line) => line.split(" "));
  const counted = ["FragFails", "FragCreates", "ReasmReqds"];
  return counted.reduce((sum, title) => sum + Number(values[titles.indexOf(title)]), 0);
}
