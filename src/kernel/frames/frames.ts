import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { bind, close, type Fd, receive, send, socket, whenReadable } from "../sys.ts";
import type { FrameSelection, FrameSocket, FramesPort } from "./frames-port.ts";

const [AF_PACKET, SOCK_RAW, SOCK_NONBLOCK] = [17, 3, 0x800];
const LARGEST_FRAME = 65_550;
/** Read at once; what is left is read when the event loop comes round. */
const AT_ONCE = 64;

/** Of a namespace, or of the one this thread is in. */
export function realFrames(netns?: Netns): FramesPort {
  return {
    open: (selection, onFrame) => {
      const fd = netns ? inside(netns.fd, () => packetSocket(selection)) : packetSocket(selection);
      return frameSocket(fd, onFrame);
    },
  };
}

/** Made for no protocol, so that it takes nothing of other interfaces before it is bound to one. */
function packetSocket({ device, protocol }: FrameSelection): Fd {
  const fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
  const address = Buffer.alloc(20);
  address.writeUInt16LE(AF_PACKET, 0);
  address.writeUInt16BE(protocol, 2);
  address.writeInt32LE(device, 4);
  try {
    bind(fd, address);
    return fd;
  } catch (error) {
    close(fd);
    throw error;
  }
}

function frameSocket(fd: Fd, onFrame: (frame: Buffer) => void): FrameSocket {
  const bytes = Buffer.alloc(LARGEST_FRAME);
  let open = true;
  const read = (): void => {
    for (let frames = 0; open && frames < AT_ONCE; frames++) {
      const length = receive(fd, bytes, "now");
      if (length < 0) {
        // Called for no frame: the interface went down. The kernel goes on with the socket when it is up again, the event loop does not.
        if (frames === 0) watchAgain();
        return;
      }
      onFrame(Buffer.from(bytes.subarray(0, length)));
    }
  };
  let watch = whenReadable(fd, read);
  const watchAgain = (): void => {
    watch.close();
    watch = whenReadable(fd, read);
  };
  return {
    send: (frame) => open && send(fd, frame) === frame.length,
    close: () => {
      if (!open) return;
      open = false;
      watch.close();
      close(fd);
    },
  };
}
