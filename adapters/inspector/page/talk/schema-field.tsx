import { h } from 'preact'
import { useId } from 'preact/hooks'
import { startOf, type Draft, type Field } from './schema-fields.ts'
import { draftIn } from './schema-values.ts'

/** A field of a form, and the handler of its changes. */
export interface SchemaFieldProps {
  readonly field: Field
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  readonly title: string
  readonly description?: string
  readonly isRequired?: boolean
}

/** A field for a schema, with its title and description. */
export function SchemaField({ field, draft, change, title, description = '', isRequired = false }: SchemaFieldProps) {
  const id = useId()
  if (field.kind === 'object') {
    const drafts = typeof draft === 'object' && !Array.isArray(draft) ? draft : {}
    return (
      <fieldset class="field-group">
        {title !== '' && <legend>{title}</legend>}
        {description !== '' && <p class="quiet">{description}</p>}
        {field.members.map(({ name, start, ...member }) => (
          <SchemaField
            key={name}
            {...member}
            draft={draftIn(drafts, name) ?? start}
            change={value => change({ ...drafts, [name]: value })}
          />
        ))}
      </fieldset>
    )
  }
  if (field.kind === 'list')
    return <ListField field={field} draft={draft} change={change} title={title} description={description} />
  return (
    <div class={`field field-${field.kind}`}>
      <label for={id}>
        {title}
        {isRequired && field.kind !== 'boolean' && (
          <span class="quiet" title="wanted">
            {' '}
            *
          </span>
        )}
      </label>
      <FieldInput id={id} field={field} draft={draft} change={change} isRequired={isRequired} />
      {description !== '' && <p class="quiet">{description}</p>}
    </div>
  )
}

function ListField({
  field,
  draft,
  change,
  title,
  description
}: SchemaFieldProps & { readonly field: Extract<Field, { kind: 'list' }> }) {
  const drafts = Array.isArray(draft) ? draft : []
  return (
    <fieldset class="field-group">
      <legend>{title}</legend>
      {description !== '' && <p class="quiet">{description}</p>}
      {drafts.map((one, i) => (
        <div key={i} class="field-item">
          <FieldInput
            id={`${title}-${i}`}
            label={`${title} ${i + 1}`}
            field={field.item}
            draft={one}
            change={value => change(drafts.map((other, at) => (at === i ? value : other)))}
            isRequired={false}
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove ${title} ${i + 1}`}
            onClick={() => change(drafts.filter((_, at) => at !== i))}
          >
            ✕
          </button>
        </div>
      ))}
      <button type="button" onClick={() => change([...drafts, startOf(field.item)])}>
        One more
      </button>
    </fieldset>
  )
}

interface TextInputProps {
  readonly id: string
  readonly field: Extract<Field, { kind: 'text' }>
  readonly text: string
  readonly isRequired: boolean
  readonly take: (event: { readonly currentTarget: { readonly value: string } }) => void
}

interface FieldInputProps extends Pick<SchemaFieldProps, 'field' | 'draft' | 'change'> {
  readonly id: string
  readonly label?: string
  readonly isRequired: boolean
}

function FieldInput({ id, label, field, draft, change, isRequired }: FieldInputProps) {
  const text = typeof draft === 'string' ? draft : ''
  const common = { id, ...(label !== undefined && { 'aria-label': label }) }
  const take = (event: { readonly currentTarget: { readonly value: string } }) => change(event.currentTarget.value)
  switch (field.kind) {
    case 'const':
      return (
        <output {...common} class="mono">
          {JSON.stringify(field.value)}
        </output>
      )
    case 'boolean':
      return (
        <input
          {...common}
          type="checkbox"
          checked={draft === true}
          onChange={event => change(event.currentTarget.checked)}
        />
      )
    case 'choice':
      return (
        <select {...common} value={text} required={isRequired} onChange={take}>
          <option value="" disabled={isRequired}>
            choose…
          </option>
          {field.options.map((option, i) => (
            <option key={i} value={String(i)}>
              {typeof option === 'string' ? option : JSON.stringify(option)}
            </option>
          ))}
        </select>
      )
    case 'number':
      return (
        <input
          {...common}
          type="number"
          value={text}
          required={isRequired}
          step={field.step ?? (field.isWhole ? 1 : 'any')}
          onInput={take}
          {...(field.min !== undefined && { min: field.min })}
          {...(field.max !== undefined && { max: field.max })}
        />
      )
    case 'text':
      return <TextInput {...common} field={field} text={text} isRequired={isRequired} take={take} />
    case 'json':
    case 'list':
    case 'object':
    default:
      return (
        <textarea
          {...common}
          class="mono"
          rows={4}
          spellcheck={false}
          placeholder="JSON"
          value={text}
          required={isRequired}
          onInput={take}
        />
      )
  }
}

/** An input whose type depends on the schema, which preact's types do not allow in JSX. */
function TextInput({ field: { input, min, max, pattern }, text, isRequired, take, ...common }: TextInputProps) {
  const attributes: Readonly<Record<string, unknown>> = {
    ...common,
    type: input,
    value: text,
    required: isRequired,
    onInput: take,
    minLength: min,
    maxLength: max,
    pattern
  }
  return h('input', attributes)
}
