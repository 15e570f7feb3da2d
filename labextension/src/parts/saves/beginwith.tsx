/** The row of the form that begins a group with the variables of a save. */
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { clockTime } from '../../model/format/quantities';
import type { ILastSave } from '../../services/protocol';
import { NotAnsweredLine } from '../../widgets/base/errornote';
import { useAsked } from '../../widgets/base/hooks';
import type { IBeginningRowProps } from '../../widgets/starting/beginnings';
import { useSidebar } from '../../widgets/sidebar/context';
import { Row } from '../../widgets/sidebar/startform/formrow';

/** Nothing where there is no save. */
export function BeginWith({ chosen: given, choose }: IBeginningRowProps): React.ReactElement | null {
  const chosen = given as ILastSave | undefined;
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
          onChange={event => {
            const save = saves.find(save => keyOf(save) === event.target.value);
            choose(save, save && { numRanks: save.world_size, name: save.group });
          }}
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
