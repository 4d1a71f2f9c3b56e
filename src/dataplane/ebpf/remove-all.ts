import type { BpfPort } from "../../kernel/bpf/bpf-port.ts";
import { SOCKET_LINKS } from "./services/socket-hooks.ts";

/** Removes every pin below a directory, and the directory. Objects without another reference are then freed by the kernel. */
export function removeAll(bpf: BpfPort, directory: string): void {
  for (const name of bpf.pins(directory)) {
    const path = `${directory}/${name}`;
    if (isDirectory(name)) removeAll(bpf, path);
    else bpf.unpin(path);
  }
  bpf.removePinDirectory(directory);
}

/** Recognised by our own names: maps and links are never called like this. */
function isDirectory(name: string): boolean {
  return name === "links" || name === SOCKET_LINKS || name.startsWith("maps_");
}
