/** The row of the form that begins a group with the variables of a save. */
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { clockTime } from '../../../model/state/saves';
import type { ILastSave } from '../../../services/protocol';
import { NotAnsweredLine } from '../../base/errornote';
import { useAsked } from '../../base/hooks';
import { useSidebar } from '../context';
import { Row } from './formrow';

export interface IBeginWithProps {
  readonly chosen: ILastSave | null;
  readonly onChoose: (save: ILastSave | null) => void;
}

/** Nothing where there is no save. */
export function BeginWith({ chosen, onChoose }: IBeginWithProps): React.ReactElement | null {
  const { clock, service, trans } = useSidebar();
  const { answer, error, again } = useAsked(() => service.lastSaves());
  if (error) {
    return <NotAnsweredLine what={trans.__('The saves could not be listed.')} error={error} again={again} />;
  }
  const saves = answer?.saves ?? [];
  if (saves.length === 0) {
    return null;
  }
  const note = chosen ? trans.__('%1, Python %2', chosen.name, chosen.python_version) : undefined;
  return (
    <Row label={trans.__('Begin with')} problem={undefined} note={note}>
      {id => (
        <HTMLSelect
          {...id}
          value={chosen ? keyOf(chosen) : ''}
          onChange={event => onChoose(saves.find(save => keyOf(save) === event.target.value) ?? null)}
        >
          <option value="">{trans.__('no variables')}</option>
          {saves.map(save => (
            <option key={keyOf(save)} value={keyOf(save)}>
              {trans._n(
                '%2 as it was at %3 (%1 rank)',
                '%2 as it was at %3 (%1 ranks)',
                save.world_size,
                save.group,
                clockTime(save.saved_at, clock.now())
              )}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}

function keyOf({ folder, name }: ILastSave): string {
  return `${folder}/${name}`;
}
