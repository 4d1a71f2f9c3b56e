/**
 * What the journal needs of a directory. Nothing is durable before `sync` (what a file holds) and `syncDirectory` (which files
 * there are); the fake keeps exactly to that and loses the rest when its power goes.
 */
export interface Disk {
  /** For messages. */
  readonly path: string;
  list(): Promise<string[]>;
  read(name: string): Promise<Buffer>;
  /** A new file; fails when there is one of this name. */
  create(name: string): Promise<DiskFile>;
  /** Cuts a file short, durably. */
  truncate(name: string, size: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
  syncDirectory(): Promise<void>;
  /** Lets another process have the directory. */
  close(): Promise<void>;
}

export interface DiskFile {
  append(bytes: Buffer): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}
