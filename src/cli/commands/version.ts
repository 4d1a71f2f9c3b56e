import { print } from "../printer.ts";
import type { Session } from "../session.ts";
import { VERSION } from "../version.ts";

interface Versions {
  client: { version: string; node: string; platform: string };
}

export async function version(session: Session, _options: { client?: true }): Promise<void> {
  const client = { version: VERSION, node: process.version, platform: `${process.platform}/${process.arch}` };
  const found: Versions = { client };
  await print(session, found, () => ({ columns: ["PROGRAM", "VERSION"], rows: [["vendorctl", client.version]] }));
}
