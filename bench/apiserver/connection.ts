import { once } from "node:events";
import { connect, type SecureContext, type TLSSocket } from "node:tls";
import { ResponseReader } from "./response-reader.ts";

/** A server to measure, and as whom. */
export interface Endpoint {
  host: string;
  port: number;
  serverName: string | undefined;
  secureContext: SecureContext;
  authorization: string | undefined;
  insecure: boolean;
}

interface Answer {
  status: number;
  body: Buffer;
}

/**
 * One kept-alive TLS connection, one request at a time. Much leaner than `node:https`: client and server share two cores, and
 * what a client spends on itself is missing from the figures of the server.
 */
export class Connection {
  readonly #socket: TLSSocket;
  readonly #fixed: string;
  #status = 0;
  #pieces: Buffer[] = [];
  #resolve: (answer: Answer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #watch: { opened: () => void; onPiece: (bytes: Buffer) => void } | undefined;

  static async open(endpoint: Endpoint): Promise<Connection> {
    const { host, port, secureContext, serverName, insecure } = endpoint;
    const socket = connect({ host, port, secureContext, servername: serverName, rejectUnauthorized: !insecure });
    await once(socket, "secureConnect");
    socket.setNoDelay(true);
    return new Connection(socket, endpoint);
  }

  private constructor(socket: TLSSocket, { host, port, authorization }: Endpoint) {
    this.#socket = socket;
    const who = authorization === undefined ? "" : `authorization: ${authorization}\r\n`;
    this.#fixed = `host: ${host}:${port}\r\nuser-agent: bench/1\r\naccept: application/json\r\n${who}`;
    const reader = new ResponseReader({
      head: (status) => {
        this.#status = status;
        this.#watch?.opened();
      },
      piece: (bytes) => (this.#watch ? this.#watch.onPiece(bytes) : this.#pieces.push(bytes)),
      end: () => this.#answered(),
    });
    socket.on("data", (bytes: Buffer) => reader.push(bytes));
    socket.on("error", (error) => this.#reject(error));
    socket.on("close", () => this.#reject(new Error("the server closed the connection")));
  }

  request(method: string, path: string, body = ""): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#send(method, path, body);
    });
  }

  /** For answers that must be good. */
  async expect(method: string, path: string, body?: string): Promise<Buffer> {
    const answer = await this.request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return answer.body;
  }

  /** Resolves when the server has opened the watch; from then on the connection is good for nothing else. */
  watch(path: string, onPiece: (bytes: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#watch = { opened: resolve, onPiece };
      this.#send("GET", path, "");
    });
  }

  close(): void {
    this.#reject = () => {};
    this.#socket.destroy();
  }

  #send(method: string, path: string, body: string): void {
    const length =
      body === "" ? "" : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
    this.#socket.write(`${method} ${path} HTTP/1.1\r\n${this.#fixed}${length}\r\n${body}`);
  }

  #answered(): void {
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#resolve({ status: this.#status, body });
  }
}
