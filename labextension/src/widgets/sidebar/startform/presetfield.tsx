/** The first field of the form: named options that an administrator, or the user, has written for this server. */
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { type IStartForm, presetForm } from '../../../model/groups/startvalues';
import type { IPresets } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { NotAnsweredLine } from '../../base/errornote';
import { type IAsked } from '../../base/hooks';
import { useSidebar } from '../context';
import { Row } from './formrow';
import type { IFieldProps } from './startfields';

interface IPresetProps extends IFieldProps {
  readonly asked: IAsked<IPresets>;
  /** What the form has without a preset. */
  readonly initial: IStartForm;
}

/** Fills in the form; nothing to choose from on a server without presets. */
export function PresetField(props: IPresetProps): React.ReactElement | null {
  const { form, world, asked, initial, set } = props;
  const { trans } = useSidebar();
  if (asked.error) {
    return <NotAnsweredLine {...asked} error={asked.error} what={trans.__('The presets could not be listed.')} />;
  }
  if (world.presets.length === 0) {
    return null;
  }
  const chosen = world.presets.find(({ name }) => name === form.preset);
  const unusable = world.presets.map(({ label, problem, problem_words }) => ({
    label,
    reason: problem && inWords(trans, problem, problem_words)
  }));
  return (
    <Row label={trans.__('Preset')} problem={undefined} note={chosen?.description} unusable={unusable}>
      {id => (
        <HTMLSelect
          {...id}
          value={form.preset}
          onChange={event => set(presetForm(form, world, initial, event.target.value))}
        >
          <option value="">{trans.__('None')}</option>
          {world.presets.map(({ name, label, description, problem }) => (
            <option key={name} value={name} title={description} disabled={problem !== null}>
              {problem === null ? label : trans.__('%1 (not usable)', label)}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Row>
  );
}
