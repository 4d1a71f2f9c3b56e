import { kernelError } from "../errors.ts";
import type { FrameSelection, FramesPort } from "../frames/frames-port.ts";
import { otherEnd } from "./fake-links.ts";
import type { FakeNamespace, FakeState } from "./fake-state.ts";

interface Listener extends FrameSelection {
  namespace: FakeNamespace;
  onFrame(frame: Buffer): void;
}

const ETHERNET_HEADER = 14;
const listeners = new WeakMap<FakeState, Set<Listener>>();

/** From one end of a veth to the other; there is no other wire. */
export function fakeFrames(world: FakeState, namespace: FakeNamespace): FramesPort {
  const all = listeners.get(world) ?? new Set();
  listeners.set(world, all);
  return {
    open: (selection, onFrame) => {
      if (!namespace.links.has(selection.device)) throw kernelError("bind", "ENODEV");
      const listener = { ...selection, namespace, onFrame };
      all.add(listener);
      return {
        send: (bytes) => {
          const frame = Buffer.from(bytes);
          const link = namespace.links.get(selection.device);
          if (!all.has(listener) || !link?.up || frame.length > link.mtu + ETHERNET_HEADER) return false;
          const end = otherEnd(world, namespace, selection.device);
          setImmediate(() => {
            for (const one of all) {
              const isThere = one.namespace === end?.namespace && one.device === end?.index;
              if (isThere && one.protocol === frame.readUInt16BE(12)) one.onFrame(frame);
            }
          });
          return true;
        },
        close: () => void all.delete(listener),
      };
    },
  };
}
