/** What ranks can begin with, other than nothing: parts add theirs. */
import type React from 'react';
import type { IReplaceChoice } from '../../model/state/replacing';
import type { IGroup } from '../../services/protocol';

/** A way to start a group that is not there. */
export interface IFoundBeginning {
  readonly label: string;
  readonly title: string;
  readonly numRanks: number;
  /** What `begin` is called with. */
  readonly chosen: unknown;
}

export interface IBeginningRowProps {
  /** What was chosen; undefined: nothing. */
  readonly chosen: unknown;
  /** The group gets the number of ranks of `like`, and its name unless one was typed. */
  readonly choose: (chosen: unknown, like?: { readonly numRanks: number; readonly name: string }) => void;
}

export interface IBeginning {
  /** Unique, for example `my-extension:queue`. */
  readonly id: string;
  /** Its row in the form of a start. */
  readonly Row: React.ComponentType<IBeginningRowProps>;
  /** Resolves with how a group of that name can be started, in a cell that misses it; with null if it cannot. */
  find(name: string): Promise<IFoundBeginning | null>;
  /** Give a group that was just started what was chosen. Shows its errors itself. */
  begin(group: IGroup, chosen: unknown): Promise<void>;
}

/** Resolves with what new processes in place of dead ranks can begin with, or null. */
export type ReplaceWay = (group: IGroup) => Promise<IReplaceChoice | null>;

const added: IBeginning[] = [];

/** Add one; plugins add theirs. */
export function addBeginning(beginning: IBeginning): void {
  added.push(beginning);
}

/** Return all that were added. */
export function beginnings(): readonly IBeginning[] {
  return added;
}

const ways: { rank: number; way: ReplaceWay }[] = [];

/** Add a choice for new processes in place of dead ranks; the one with the lowest rank is proposed. */
export function addReplaceChoice(rank: number, way: ReplaceWay): void {
  ways.push({ rank, way });
  ways.sort((a, b) => a.rank - b.rank);
}

/** Return the choices for the dead ranks of a group. */
export async function replaceChoices(group: IGroup): Promise<IReplaceChoice[]> {
  const found = await Promise.all(ways.map(async ({ way }) => way(group)));
  return found.filter(one => one !== null);
}
