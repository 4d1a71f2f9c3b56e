/** One object of `nft --json list`: `{ table: {...} }`, `{ chain: {...} }`, `{ rule: {...} }`, `{ set: {...} }`. */
export type NftObject = Readonly<Record<string, unknown>>;

export interface NftTable {
  readonly family: string;
  readonly name: string;
}

/** nftables of one network namespace. */
export interface NftPort {
  /** Commands in nft's language, one transaction: all of it holds afterwards, or nothing of it. Off the event loop, one after the other. */
  run(commands: string): Promise<void>;
  /** What a `list` command shows, as nft's JSON has it. */
  list(command: string): Promise<NftObject[]>;
  tables(): Promise<NftTable[]>;
  close(): void;
}
