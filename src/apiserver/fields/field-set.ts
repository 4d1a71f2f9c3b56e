import { isMap } from "./json.ts";
import { comparePathElements, type PathElement, readPathElement } from "./path-element.ts";

/**
 * A set of fields, as the tree FieldsV1 is: what `metadata.managedFields` stores is the set itself, so nothing is
 * translated on the way in or out. Sets are never changed after they are made, and share their branches.
 *
 * A branch that is `{}` is a member; one that is a member and has children starts with `".": {}`; one without `"."`
 * only leads to its children. At the root, `{}` is the empty set: "the whole object" has no owner.
 * Siblings stand in path-element order, so equal sets have equal texts.
 */
export interface FieldSet {
  readonly [element: PathElement]: FieldSet;
}

export const EMPTY: FieldSet = Object.freeze({});
/** The branch of a member without children. */
export const LEAF: FieldSet = EMPTY;
const SELF = ".";
const FIELD = "f".charCodeAt(0);

export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

export function isMember(branch: FieldSet): boolean {
  for (const first in branch) return first === SELF;
  return true;
}

function hasChildren(branch: FieldSet): boolean {
  for (const element in branch) if (element !== SELF) return true;
  return false;
}

/**
 * A branch of plain fields, made once and shared: objects of one kind have few different sets of fields, and putting a
 * shape together is the dearest part of a write's bookkeeping. `leaves` is that branch with nothing below its fields;
 * `blank` is the same to copy from, because copying a frozen object is slow.
 */
interface Shape {
  leaves: FieldSet;
  blank: FieldSet;
}

const MAX_SHAPES = 10_000;
const shapes = new Map<string, Shape>();

function shapeOf(elements: readonly PathElement[], member: boolean): Shape {
  const key = (member ? "." : "") + elements.join("\n");
  const known = shapes.get(key);
  if (known) return known;
  if (shapes.size >= MAX_SHAPES) shapes.clear();
  const blank = inOrderOf(
    elements,
    elements.map(() => LEAF),
    member,
  );
  const shape = { blank, leaves: Object.freeze({ ...blank }) };
  shapes.set(key, shape);
  return shape;
}

function inOrderOf(elements: readonly PathElement[], branches: readonly FieldSet[], member: boolean): FieldSet {
  const out: Record<PathElement, FieldSet> = {};
  if (member) out[SELF] = LEAF;
  if (inOrder(elements)) {
    for (let at = 0; at < elements.length; at++) out[elements[at]!] = branches[at]!;
  } else {
    const order = elements.map((_, at) => at).sort((a, b) => comparePathElements(elements[a]!, elements[b]!));
    for (const at of order) out[elements[at]!] = branches[at]!;
  }
  return out;
}

/** Collects the children of one branch in any order, and puts them in order at the end. */
export class BranchBuilder {
  private readonly elements: PathElement[] = [];
  private readonly branches: FieldSet[] = [];
  private plain = true;
  private flat = true;

  add(element: PathElement, branch: FieldSet | undefined): void {
    if (branch === undefined) return;
    this.elements.push(element);
    this.branches.push(branch);
    if (branch !== LEAF) this.flat = false;
    if (element.charCodeAt(0) !== FIELD) this.plain = false;
  }

  /** The branch, or undefined when it neither is a member nor leads to one. */
  build(member: boolean): FieldSet | undefined {
    const { elements, branches } = this;
    if (elements.length === 0) return member ? LEAF : undefined;
    // List items are named after values, which are as many as there are objects: no shape worth keeping.
    if (!this.plain) return inOrderOf(elements, branches, member);
    const shape = shapeOf(elements, member);
    if (this.flat) return shape.leaves;
    const out: Record<PathElement, FieldSet> = { ...shape.blank };
    for (let at = 0; at < elements.length; at++) if (branches[at] !== LEAF) out[elements[at]!] = branches[at]!;
    return out;
  }
}

function inOrder(elements: readonly PathElement[]): boolean {
  for (let at = 1; at < elements.length; at++) {
    if (comparePathElements(elements[at - 1]!, elements[at]!) > 0) return false;
  }
  return true;
}

/** A branch standing at the root is a set: its own membership means nothing there. */
export function rootSet(branch: FieldSet | undefined): FieldSet {
  if (branch === undefined) return EMPTY;
  if (!Object.hasOwn(branch, SELF)) return branch;
  const { [SELF]: _, ...rest } = branch;
  return rest;
}

/** The set of these paths, each a list of field names: `fieldSetOf(["status"], ["metadata", "labels"])`. */
export function fieldSetOf(...paths: readonly (readonly string[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => {
    const branch = path.reduceRight<FieldSet>((below, name) => ({ [`f:${name}`]: below }), LEAF);
    return path.length === 0 ? set : union(set, branch);
  }, EMPTY);
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a;
  return isEmpty(a) ? b : unionBranches(a, b);
}

/** The union of two branches; `a` itself when `b` adds nothing, so that unchanged sets keep their identity. */
export function unionBranches(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const member = isMember(a) || isMember(b);
  let changed: Map<PathElement, FieldSet> | undefined;
  for (const element in b) {
    if (element === SELF) continue;
    const mine = a[element];
    const joined = mine === undefined ? b[element]! : unionBranches(mine, b[element]!);
    if (joined === mine) continue;
    changed ??= new Map();
    changed.set(element, joined);
  }
  if (changed === undefined && member === isMember(a)) return a;
  const builder = new BranchBuilder();
  for (const element in a) if (element !== SELF) builder.add(element, changed?.get(element) ?? a[element]);
  for (const [element, branch] of changed ?? []) if (a[element] === undefined) builder.add(element, branch);
  return builder.build(member)!;
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? EMPTY : rootSet(intersectBranches(a, b));
}

function intersectBranches(a: FieldSet, b: FieldSet): FieldSet | undefined {
  const builder = new BranchBuilder();
  for (const element in a) {
    if (element === SELF) continue;
    const theirs = b[element];
    if (theirs !== undefined) builder.add(element, intersectBranches(a[element]!, theirs));
  }
  return builder.build(isMember(a) && isMember(b));
}

/** Exact members only: taking away a parent leaves its children, and the other way round. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? a : (childDifference(a, b, false, subtractBranch) ?? EMPTY);
}

function subtractBranch(a: FieldSet, b: FieldSet): FieldSet | undefined {
  return childDifference(a, b, isMember(a) && !isMember(b), subtractBranch);
}

/** Takes away each member of `b` with everything below it. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? a : (childDifference(a, b, false, subtractWhole) ?? EMPTY);
}

function subtractWhole(a: FieldSet, b: FieldSet): FieldSet | undefined {
  return isMember(b) ? undefined : childDifference(a, b, isMember(a), subtractWhole);
}

type Subtract = (a: FieldSet, b: FieldSet) => FieldSet | undefined;

function childDifference(a: FieldSet, b: FieldSet, member: boolean, subtract: Subtract): FieldSet | undefined {
  let changed = hasChildren(a) ? Object.hasOwn(a, SELF) !== member : !member;
  const builder = new BranchBuilder();
  for (const element in a) {
    if (element === SELF) continue;
    const mine = a[element]!;
    const theirs = b[element];
    const left = theirs === undefined ? mine : subtract(mine, theirs);
    if (left !== mine) changed = true;
    builder.add(element, left);
  }
  return changed ? builder.build(member) : a;
}

/** Every member, parents before children, members of one level before what lies deeper. */
export function pathsOf(set: FieldSet): PathElement[][] {
  const paths: PathElement[][] = [];
  const walk = (branch: FieldSet, prefix: PathElement[]): void => {
    const children = Object.keys(branch).filter((element) => element !== SELF);
    for (const element of children) if (isMember(branch[element]!)) paths.push([...prefix, element]);
    for (const element of children) walk(branch[element]!, [...prefix, element]);
  };
  walk(set, []);
  return paths;
}

/** What lies below one element; undefined when nothing does. */
export function below(set: FieldSet, element: PathElement): FieldSet | undefined {
  const branch = set[element];
  return branch !== undefined && hasChildren(branch) ? branch : undefined;
}

export function hasElement(set: FieldSet, element: PathElement): boolean {
  const branch = set[element];
  return branch !== undefined && isMember(branch);
}

export function asMember(branch: FieldSet): FieldSet {
  return isMember(branch) ? branch : { [SELF]: LEAF, ...branch };
}

/**
 * Reads FieldsV1 as a client wrote it: elements in any spelling and order, kinds from the future left out.
 * Returns the same object when it already is canonical. Throws SyntaxError when it is not FieldsV1 at all.
 */
export function readFieldSet(fields: unknown): FieldSet {
  if (fields === undefined || fields === null) return EMPTY;
  if (!isMap(fields)) throw new SyntaxError("FieldsV1 must be a JSON object");
  return rootSet(readBranch(fields));
}

function readBranch(fields: Readonly<Record<string, unknown>>): FieldSet {
  const children = new Map<PathElement, FieldSet>();
  let same = true;
  let last: PathElement | undefined;
  for (const text in fields) {
    if (text === SELF) {
      if (last !== undefined) same = false;
      continue;
    }
    const element = readPathElement(text);
    const value = fields[text] ?? EMPTY;
    if (!isMap(value)) throw new SyntaxError(`FieldsV1 has a value that is not an object at ${JSON.stringify(text)}`);
    const branch = readBranch(value);
    if (element === undefined) {
      same = false;
      continue;
    }
    const known = children.get(element);
    children.set(element, known === undefined ? branch : unionBranches(known, branch));
    if (element !== text || branch !== value || (last !== undefined && comparePathElements(last, element) >= 0)) {
      same = false;
    }
    last = element;
  }
  const member = Object.hasOwn(fields, SELF) || children.size === 0;
  if (same && !(children.size === 0 && Object.hasOwn(fields, SELF))) return fields as FieldSet;
  const builder = new BranchBuilder();
  for (const [element, branch] of children) builder.add(element, branch);
  return builder.build(member) ?? LEAF;
}
