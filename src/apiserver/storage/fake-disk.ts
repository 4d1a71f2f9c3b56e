import type { Disk, DiskFile } from "./disk.ts";

interface FakeFile {
  bytes: Buffer;
  /** How much of it a power loss cannot take. */
  synced: number;
}

type Names = Map<string, FakeFile>;
type NameChange = (names: Names) => void;

/**
 * A disk as bad as a real one is allowed to be: what was not synced may be there after a power loss, or in part, or not at all.
 * It can also fail at a chosen operation, which is how a test stops a server exactly there.
 */
export class FakeDisk implements Disk {
  readonly path = "fake";
  operations = 0;
  /** From this operation on everything fails with `failure`. */
  failFrom = Number.POSITIVE_INFINITY;
  failure = "EIO";
  #names: Names;
  /** What a power loss cannot take, and the changes since that it can. */
  #syncedNames: Names;
  #nameChanges: NameChange[] = [];

  constructor(files: Names = new Map()) {
    this.#names = files;
    this.#syncedNames = new Map(files);
  }

  /** The same files after `kill -9`: the kernel still writes all it was given. */
  afterKill(): FakeDisk {
    return new FakeDisk(copy(this.#names, ({ bytes }) => bytes));
  }

  /** The same files after a power loss; `random` decides what became of all that was not synced. */
  afterPowerLoss(random: () => number): FakeDisk {
    const names = new Map(this.#syncedNames);
    for (const change of this.#nameChanges) if (random() >= 0.5) change(names);
    return new FakeDisk(copy(names, (file) => worstOf(file, random)));
  }

  /** Changes one byte of a file, as a bad disk would. */
  damage(name: string, offset: number): void {
    const { bytes } = this.#file(name);
    bytes[offset] = bytes[offset]! ^ 0x5a;
  }

  size(name: string): number {
    return this.#file(name).bytes.length;
  }

  async list(): Promise<string[]> {
    return [...this.#names.keys()];
  }

  async read(name: string): Promise<Buffer> {
    return Buffer.from(this.#file(name).bytes);
  }

  async create(name: string): Promise<DiskFile> {
    await this.#operation();
    if (this.#names.has(name)) throw failure("EEXIST");
    const file: FakeFile = { bytes: Buffer.alloc(0), synced: 0 };
    this.#change((names) => names.set(name, file));
    return {
      append: async (bytes) => {
        // A failing write still leaves some of its bytes behind.
        const failing = this.operations + 1 >= this.failFrom;
        file.bytes = Buffer.concat([file.bytes, failing ? bytes.subarray(0, bytes.length / 2) : bytes]);
        await this.#operation();
      },
      sync: async () => {
        await this.#operation();
        file.synced = file.bytes.length;
      },
      close: async () => {},
    };
  }

  async truncate(name: string, size: number): Promise<void> {
    await this.#operation();
    const file = this.#file(name);
    file.bytes = file.bytes.subarray(0, size);
    file.synced = size;
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#operation();
    const file = this.#file(from);
    this.#change((names) => {
      names.delete(from);
      names.set(to, file);
    });
  }

  async remove(name: string): Promise<void> {
    await this.#operation();
    this.#change((names) => names.delete(name));
  }

  async syncDirectory(): Promise<void> {
    await this.#operation();
    this.#syncedNames = new Map(this.#names);
    this.#nameChanges = [];
  }

  async close(): Promise<void> {}

  #file(name: string): FakeFile {
    const file = this.#names.get(name);
    if (file === undefined) throw failure("ENOENT");
    return file;
  }

  #change(change: NameChange): void {
    change(this.#names);
    this.#nameChanges.push(change);
  }

  /** Takes a turn of the event loop, as a disk does. */
  async #operation(): Promise<void> {
    this.operations++;
    await new Promise(setImmediate);
    if (this.operations >= this.failFrom) throw failure(this.failure);
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

function copy(names: Names, contents: (file: FakeFile) => Buffer): Names {
  const files = [...names].map(([name, file]) => [name, Buffer.from(contents(file))] as const);
  return new Map(files.map(([name, bytes]) => [name, { bytes, synced: bytes.length }]));
}

function pick(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

/** Unsynced bytes: gone, cut anywhere, or there with holes of zeros, because a disk writes its blocks in any order. */
function worstOf({ bytes, synced }: FakeFile, random: () => number): Buffer {
  const end = synced + pick(random, bytes.length - synced + 1);
  const left = Buffer.from(bytes.subarray(0, random() < 0.5 ? end : bytes.length));
  if (random() < 0.5 && left.length > synced) {
    const hole = synced + pick(random, left.length - synced);
    left.fill(0, hole, hole + 1 + pick(random, left.length - hole));
  }
  return left;
}
