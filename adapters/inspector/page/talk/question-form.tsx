import { h } from 'preact'
import { useId, useMemo, useState } from 'preact/hooks'
import type { Message, TaskStatus } from '../../../../machines/protocol/objects.ts'
import { answerSchemaOf } from '../../../client/messages.ts'
import {
  draftIn,
  type Field,
  type FieldDraft,
  fieldOf,
  formValue,
  optionText,
  startOf
} from '../../../client/state/answer-form.ts'
import { choiceLabel, choicesIn } from '../../story/moments.ts'
import { MessageView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { jsonText } from '../wording.ts'
import { authorize, isSending, sendParts } from './sending.ts'

/** The maximum number of options that are buttons instead of a list. */
const MOST_BUTTONS = 6

/**
 * A task's question, and while it is open, its form: from its schema, or its choices. Text is answered below, in the
 * composer.
 */
export function Question({
  taskId,
  status,
  isOpen
}: {
  readonly taskId: string
  readonly status: TaskStatus
  readonly isOpen: boolean
}) {
  const { message, state } = status
  const isOutOfBand = state === 'TASK_STATE_AUTH_REQUIRED'
  const schema = useMemo(() => answerSchemaOf(message), [message])
  const choices = useMemo(() => choicesIn(message), [message])
  const isWords = isAnsweredInWords(message)
  const shown = message && { ...message, parts: message.parts.filter(part => !choices.includes(part)) }
  return (
    <section
      class={isOpen ? 'question question-open' : 'question'}
      role={isOpen ? 'region' : 'group'}
      aria-label={isOpen ? 'The task waits for you' : 'A question of the task'}
    >
      {shown && shown.parts.length > 0 ? (
        <MessageView message={shown} />
      ) : (
        <p>{isOutOfBand ? 'The task asks for an authorization.' : 'The task asks for an answer.'}</p>
      )}
      {choices.length > 0 && isOpen && (
        <div class="choices" role="group" aria-label="Choices">
          {choices.map((part, i) => (
            <button
              key={i}
              type="button"
              disabled={isSending.value}
              onClick={() => void sendParts([part], { taskId, question: message })}
            >
              {choiceLabel(part)}
            </button>
          ))}
        </div>
      )}
      {choices.length > 0 && !isOpen && <p class="quiet">{`Choices: ${choices.map(choiceLabel).join(', ')}`}</p>}
      {isOpen && (isOutOfBand || (schema && !isWords)) && (
        <AnswerForm taskId={taskId} question={message} schema={schema} isOutOfBand={isOutOfBand} />
      )}
      {isOpen && !isOutOfBand && isWords && <p class="quiet">Write your answer below.</p>}
      {isOpen && !isOutOfBand && choices.length > 0 && <p class="quiet">Choose one, or answer in words below.</p>}
    </section>
  )
}

interface AnswerFormProps {
  readonly taskId: string
  readonly question: TaskStatus['message']
  readonly schema: Record<string, unknown> | undefined
  readonly isOutOfBand: boolean
}

function AnswerForm({ taskId, question, schema, isOutOfBand }: AnswerFormProps) {
  const field = useMemo(() => fieldOf(schema ?? { type: 'string' }), [schema])
  const [draft, setDraft] = useState(() => startOf(field, schema?.default))
  const [wrong, setWrong] = useState<string>()
  const description = typeof schema?.description === 'string' ? schema.description : ''

  const submit = (event: Event) => {
    event.preventDefault()
    const said = formValue(field, draft, 'The answer')
    if ('wrong' in said) return setWrong(said.wrong)
    if ('nothing' in said && !isOutOfBand) return setWrong('The answer is missing')
    setWrong(undefined)
    const value = 'value' in said ? said.value : undefined
    if (isOutOfBand && hello.peek()?.authorizes === true) return authorize(taskId, value)
    void sendParts([typeof value === 'string' ? { text: value } : { data: value ?? null }], { taskId, question })
  }
  if (field.kind === 'choice' && field.options.length <= MOST_BUTTONS && !isOutOfBand) {
    return (
      <div class="choices" role="group" aria-label="Choices">
        {field.options.map((option, i) => (
          <button
            key={i}
            type="button"
            disabled={isSending.value}
            onClick={() =>
              void sendParts([typeof option === 'string' ? { text: option } : { data: option }], { taskId, question })
            }
          >
            {choiceLabel({ data: option })}
          </button>
        ))}
      </div>
    )
  }
  const heading = isOutOfBand ? 'Authorize' : 'Answer'
  return (
    <form aria-label={heading} onSubmit={submit}>
      <SchemaField
        field={field}
        draft={draft}
        change={setDraft}
        title={field.kind === 'object' ? '' : isOutOfBand ? 'Credential' : 'Your answer'}
        description={description}
        isRequired={!isOutOfBand}
      />
      {schema && field.kind === 'json' && (
        <details>
          <summary>The JSON Schema of the answer</summary>
          <pre class="part-data" tabIndex={0}>
            {jsonText(schema)}
          </pre>
        </details>
      )}
      {wrong !== undefined && <p class="wrong" role="alert">{`${wrong}.`}</p>}
      <button type="submit" class="main" disabled={isSending.value}>
        {heading}
      </button>
    </form>
  )
}

/** Whether a question wants plain text, which the composer has: it has no form of its own then. */
export function isAnsweredInWords(question: Message | undefined): boolean {
  const schema = answerSchemaOf(question)
  if (!schema) return choicesIn(question).length === 0
  const field = fieldOf(schema)
  const { kind, ...limits } = field
  const isPlain = kind === 'text' && Object.keys(limits).length === 1 && field.input === 'text'
  return isPlain && schema.description === undefined && schema.default === undefined
}

/** A field of a form, and the handler of its changes. */
export interface SchemaFieldProps {
  readonly field: Field
  readonly draft: FieldDraft
  readonly change: (draft: FieldDraft) => void
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
        {field.kind !== 'boolean' && <span class="quiet">{isRequired ? ' (required)' : ' (optional)'}</span>}
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
              {optionText(option)}
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
