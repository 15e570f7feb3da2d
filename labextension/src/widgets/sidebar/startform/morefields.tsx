/** More options of a start: the field of each is made of its row, also of a row of another package. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import React from 'react';
import { isWrong, shownDefault, shownValue } from '../../../model/groups/startoptions';
import type { IStartOptionRow, IStartOptionRows } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { NotAnsweredLine } from '../../base/errornote';
import { type IAsked } from '../../base/hooks';
import { useSidebar } from '../context';
import { Folded, type IInputIds, Row } from './formrow';
import type { IFieldProps } from './startfields';

/** The text of a field for a number in which something else was typed, which the browser hides. */
const NO_NUMBER = '?';

export function MoreFields(
  props: IFieldProps & { readonly asked: IAsked<IStartOptionRows> }
): React.ReactElement | null {
  const { form, world, asked } = props;
  const { trans } = useSidebar();
  if (asked.error) {
    return <NotAnsweredLine {...asked} error={asked.error} what={trans.__('More options could not be listed.')} />;
  }
  return world.options.length === 0 ? null : (
    <Folded title={trans.__('More options')} isSet={world.options.some(({ name }) => name in form.more)}>
      {world.options.map(row => (
        <MoreField key={row.name} {...props} row={row} />
      ))}
    </Folded>
  );
}

function MoreField({ form, set, row }: IFieldProps & { readonly row: IStartOptionRow }): React.ReactElement {
  const { trans } = useSidebar();
  const change = (text: string): void => set({ more: { ...form.more, [row.name]: text } });
  return (
    <Row
      label={inWords(trans, row.label, row.label_words)}
      problem={isWrong(row, form.more) ? 'option-invalid' : undefined}
      words={rule(trans, row)}
      help={inWords(trans, row.help, row.help_words)}
    >
      {ids => <Field ids={ids} row={row} value={shownValue(row, form.more)} change={change} />}
    </Row>
  );
}

interface IOptionProps {
  readonly ids: IInputIds;
  readonly row: IStartOptionRow;
  readonly value: string;
  readonly change: (text: string) => void;
}

/** The field that fits the kind of an option; the server's default is its placeholder. */
function Field({ ids, row, value, change }: IOptionProps): React.ReactElement {
  const { trans } = useSidebar();
  const placeholder = shownDefault(row);
  if (row.kind === 'flag') {
    const toggle = (isOn: boolean): void => change(String(isOn));
    return (
      <input {...ids} type="checkbox" checked={value === 'true'} onChange={event => toggle(event.target.checked)} />
    );
  }
  if (row.choices.length > 0) {
    return (
      <HTMLSelect {...ids} value={value} onChange={event => change(event.target.value)}>
        <option value="">{placeholder}</option>
        {row.choices.map(choice => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </HTMLSelect>
    );
  }
  if (row.kind === 'integer' || row.kind === 'number') {
    return (
      <input
        {...ids}
        className="jp-mod-styled"
        type="number"
        min={row.minimum ?? undefined}
        max={row.maximum ?? undefined}
        step={row.kind === 'integer' ? 1 : 'any'}
        value={value === NO_NUMBER ? '' : value}
        placeholder={placeholder}
        onChange={({ target }) => change(target.validity.badInput ? NO_NUMBER : target.value)}
      />
    );
  }
  return (
    <input
      {...ids}
      className="jp-mod-styled"
      value={value}
      placeholder={placeholder || (row.kind === 'words' ? trans.__('separated by commas') : '')}
      spellCheck={false}
      onChange={event => change(event.target.value)}
    />
  );
}

/** What can be entered into the field of an option, for one in which something else is. */
function rule(trans: TranslationBundle, { kind, minimum, maximum, max_length: longest }: IStartOptionRow): string {
  if (kind === 'text' || kind === 'words') {
    return kind === 'text'
      ? trans.__('Enter at most %1 characters.', longest)
      : trans.__('Enter at most %1 characters for each.', longest);
  }
  const wanted = kind === 'integer' ? trans.__('Enter a whole number.') : trans.__('Enter a number.');
  if (minimum !== null && maximum !== null) {
    return `${wanted} ${trans.__('It must be from %1 to %2.', minimum, maximum)}`;
  }
  if (minimum !== null) {
    return `${wanted} ${trans.__('It must be at least %1.', minimum)}`;
  }
  return maximum === null ? wanted : `${wanted} ${trans.__('It must be at most %1.', maximum)}`;
}
