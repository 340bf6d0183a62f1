import { useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import type { Message, Part, TaskStatus } from '../../../../machines/protocol/objects.ts'
import { answerSchemaOf } from '../../../client/messages.ts'
import { MessageView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { jsonText } from '../wording.ts'
import { SchemaField } from './schema-field.tsx'
import { fieldOf, startOf } from './schema-fields.ts'
import { formValue } from './schema-values.ts'
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
              {choiceText(part)}
            </button>
          ))}
        </div>
      )}
      {choices.length > 0 && !isOpen && <p class="quiet">{`Choices: ${choices.map(choiceText).join(', ')}`}</p>}
      {isOpen && (schema || isOutOfBand) && (
        <AnswerForm taskId={taskId} question={message} schema={schema} isOutOfBand={isOutOfBand} />
      )}
      {isOpen && !schema && !isOutOfBand && (
        <p class="quiet">{choices.length > 0 ? 'Or answer in words, below.' : 'Write your answer below.'}</p>
      )}
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
            {choiceText({ data: option })}
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

/** The choices of a question without a schema. */
export function choicesIn(message: Message | undefined): readonly Part[] {
  return answerSchemaOf(message) ? [] : (message?.parts ?? []).filter(part => 'data' in part)
}

/** The label of a choice: its name, if it has one. */
export function choiceText(part: Part): string {
  const value = 'data' in part ? part.data : undefined
  const name = isObject(value) ? (value.name ?? value.title ?? value.label) : value
  return typeof name === 'string' ? name : JSON.stringify(value)
}
