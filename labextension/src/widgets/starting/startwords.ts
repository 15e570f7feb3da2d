/** Describes a group that can be started: in the picker, in cells, in dialogs. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IReadWanted, IWantedGroup } from '../../tokens';
import { firstCharacters } from '../../model/format/characters';
import { sizeOf } from '../../model/groups/wanted';

/** Notebooks contain anything: a longer name is cut. */
const MAX_NAME = 40;

/** "Start train (8 ranks, env torch)". */
export function startLabel(trans: TranslationBundle, name: string, wanted: IWantedGroup): string {
  return trans.__('Start %1 (%2)', firstCharacters(name, MAX_NAME), groupWords(trans, wanted));
}

/** "8 ranks, env torch". */
function groupWords(trans: TranslationBundle, wanted: IWantedGroup): string {
  const size = sizeOf(wanted);
  return [
    ...(size === null ? [] : [trans._n('%1 rank', '%1 ranks', size)]),
    ...(wanted.num_nodes ? [trans._n('%1 node', '%1 nodes', wanted.num_nodes)] : []),
    ...(wanted.environment ? [trans.__('env %1', firstCharacters(wanted.environment, MAX_NAME))] : [])
  ].join(', ');
}

/** The fields that the label leaves out, each in a line: all beside the number of ranks and the environment. */
export function startDetails(trans: TranslationBundle, { wanted, refused }: IReadWanted): string[] {
  const { accelerator, backend, devices, env, launcher, launcher_options } = wanted;
  const variables = Object.entries(env ?? {}).map(([name, value]) => `${name}=${value}`);
  const options = Object.entries(launcher_options ?? {}).map(([name, value]) => `${name}=${value}`);
  return [
    ...(launcher ? [trans.__('Launcher: %1', launcher)] : []),
    ...options.map(option => trans.__('Launcher option %1', option)),
    ...(Array.isArray(devices) ? [trans.__('Devices: %1', devices.join(', '))] : []),
    ...(accelerator ? [trans.__('Accelerator: %1', accelerator)] : []),
    ...(backend ? [trans.__('Backend: %1', backend)] : []),
    ...variables.map(variable => trans.__('Sets %1', variable)),
    ...(refused.length ? [trans.__('Not used, because it is not valid in this notebook: %1', refused.join(', '))] : [])
  ];
}
