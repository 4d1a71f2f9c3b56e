/** Where the files of a release come from: the copies that came with this tool, or the place `--manifest-url` names. */
export interface ReleaseFiles {
  /** For plans and errors: `built in` or the address. */
  readonly from: string;
  /** The text of a published file, such as `operator-crds.yaml`. */
  read(name: string): Promise<string>;
}
