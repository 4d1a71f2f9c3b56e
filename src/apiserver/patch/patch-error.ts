type PatchErrorKind = "invalid" | "conflict" | "test-failed";

/**
 * A patch that cannot be done. `code` is the HTTP status it deserves, following Kubernetes:
 *
 * - 400 BadRequest: the patch is not a patch (a JSON patch that is not a list of operations, a merge patch that is not an
 *   object, a directive such as `$retainKeys` that is not written as one).
 * - 413 RequestEntityTooLarge: a JSON patch of more than 10,000 operations.
 * - 422 Invalid: the patch is one, but does not fit this object (a missing path, a failed `test`, an item without its merge
 *   key). Kubernetes answers some strategic ones of these with 500; the fault is the client's, so ours are 422 too.
 * - 409 Conflict: only when creating a three-way patch, which no server does.
 */
export class PatchError extends Error {
  readonly kind: PatchErrorKind;
  readonly code: 400 | 409 | 413 | 422;

  constructor(kind: PatchErrorKind, code: 400 | 409 | 413 | 422, message: string) {
    super(message);
    this.name = "PatchError";
    this.kind = kind;
    this.code = code;
  }
}

/** Not a patch at all. */
export function malformed(message: string): PatchError {
  return new PatchError("invalid", 400, message);
}

/** A patch, but not one for this object. */
export function unfit(message: string): PatchError {
  return new PatchError("invalid", 422, message);
}
