import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import type { KeyPair } from "../../src/kit/x509.ts";

export type Attribute = string | number | string[];

/** A log record as OpenTelemetry's published field numbers have it. */
export interface LogRecord {
  time: bigint;
  observed: bigint;
  severity: number;
  severityText: string;
  body: string;
  eventName: string;
  attributes: Record<string, Attribute>;
}

interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** A collector that reads by the published numbers, and not by the product's tables. */
export class Collector {
  readonly records: LogRecord[] = [];
  readonly resources: Record<string, Attribute>[] = [];
  readonly requests: { path: string; headers: NodeJS.Dict<string | string[]> }[] = [];
  /** What the next requests are answered; undefined: taken. "hang": not at all. */
  answer: () => Answer | "hang" | undefined = () => undefined;
  readonly #server: Server;

  constructor(tls?: KeyPair) {
    const take: RequestListener = (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        this.requests.push({ path: request.url ?? "", headers: request.headers });
        const answer = this.answer();
        if (answer === "hang") return;
        const { status = 200, headers = {}, body = "" } = answer ?? {};
        if (status === 200) this.#take(gunzipSync(Buffer.concat(parts)));
        response.writeHead(status, headers);
        response.end(body);
      });
    };
    this.#server = tls ? createTlsServer({ cert: tls.certificate, key: tls.key }, take) : createServer(take);
  }

  async listen(port = 0): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Over all records. */
  sum(attribute: string): number {
    return this.records.reduce((sum, { attributes }) => sum + Number(attributes[attribute] ?? 0), 0);
  }

  #take(request: Buffer): void {
    for (const logs of all(request, 1)) {
      for (const resource of all(logs, 1)) this.resources.push(attributesOf(all(resource, 1)));
      for (const scope of all(logs, 2)) for (const record of all(scope, 2)) this.records.push(recordOf(record));
    }
  }
}

function recordOf(record: Buffer): LogRecord {
  const fields = fieldsOf(record);
  const text = (number: number) => String(fields.find((field) => field.number === number)?.value ?? "");
  const time = (number: number) => all(record, number)[0]?.readBigUInt64LE() ?? 0n;
  const [body] = all(record, 5);
  return {
    ...{ time: time(1), observed: time(11), severity: Number(text(2)), severityText: text(3), eventName: text(12) },
    body: String(body && plainOf(body)),
    attributes: attributesOf(all(record, 6)),
  };
}

function attributesOf(pairs: Buffer[]): Record<string, Attribute> {
  return Object.fromEntries(pairs.map((pair) => [all(pair, 1).toString(), plainOf(all(pair, 2)[0] as Buffer)]));
}

function plainOf(any: Buffer): Attribute {
  const [field] = fieldsOf(any);
  if (field?.number === 1) return String(field.value);
  if (field?.number === 3) return Number(field.value);
  if (field?.number === 5) return all(field.value as Buffer, 1).map((value) => String(plainOf(value)));
  throw new Error("a value is of no known kind");
}

function all(message: Buffer, number: number): Buffer[] {
  return fieldsOf(message).flatMap((field) => (field.number === number ? [field.value as Buffer] : []));
}

function fieldsOf(message: Buffer): { number: number; value: Buffer | bigint }[] {
  const found: { number: number; value: Buffer | bigint }[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const wire = tag % 8;
    if (wire === 0) found.push({ number: tag >> 3, value: varint() });
    else {
      const length = wire === 1 ? 8 : Number(varint());
      found.push({ number: tag >> 3, value: message.subarray(at, at + length) });
      at += length;
    }
  }
  return found;
}
