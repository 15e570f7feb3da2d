/** The first field of the form: named options that an administrator, or the user, has written for this server. */
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { type IStartForm, presetForm } from '../../../model/groups/startvalues';
import { useSidebar } from '../context';
import { Row } from './formrow';
import type { IFieldProps } from './startfields';

/** Fills in the form; nothing to choose from on a server without presets. */
export function PresetField(props: IFieldProps & { initial: IStartForm }): React.ReactElement | null {
  const { form, world, initial, set } = props;
  const { trans } = useSidebar();
  if (world.presets.length === 0) {
    return null;
  }
  const chosen = world.presets.find(({ name }) => name === form.preset);
  return (
    <Row label={trans.__('Preset')} problem={undefined} note={chosen?.description}>
      {id => (
        <HTMLSelect
          {...id}
          value={form.preset}
          onChange={event => set(presetForm(form, world, initial, event.target.value))}
        >
          <option value="">{trans.__('None')}</option>
          {world.presets.map(({ name, label, description, problem }) => (
            <option key={name} value={name} title={problem ?? description} disabled={problem !== null}>
              {problem === null ? label : trans.__('%1 (not usable)', label)}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}
