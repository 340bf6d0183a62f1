import { useInterrupt } from '@copilotkit/react-core/v2'
import type { FormEvent } from 'react'

type Schema = Readonly<Record<string, unknown>>

/** The open question of an agent, as a form of its schema: choices, texts, numbers and yes or no. */
export function Question({ agentId }: { readonly agentId: string }) {
  useInterrupt({
    agentId,
    render: ({ interrupt, resolve, cancel }) => {
      const { message = '', responseSchema = {} } = interrupt ?? {}
      const submit = (event: FormEvent<HTMLFormElement>) => {
        event.preventDefault()
        void resolve(answerOf(new FormData(event.currentTarget), responseSchema))
      }
      return (
        <form className="card" onSubmit={submit}>
          <p>{message}</p>
          {membersOf(responseSchema).map(([name, schema]) => (
            <label key={name}>
              {name !== ANSWER && <span>{name}</span>}
              <Field name={name} schema={schema} />
            </label>
          ))}
          <button>Answer</button>
          <button type="button" onClick={() => void cancel()}>
            Cancel the task
          </button>
        </form>
      )
    }
  })
  return null
}

/** The field of an answer that has no members. */
const ANSWER = 'answer'

function Field({ name, schema }: { readonly name: string; readonly schema: Schema }) {
  const { enum: choices, type } = schema
  if (Array.isArray(choices))
    return (
      <select name={name} required>
        {choices.map(String).map(choice => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    )
  if (type === 'boolean') return <input name={name} type="checkbox" />
  return <input name={name} required {...(isNumber(type) && { type: 'number', step: 'any' })} />
}

/** The fields for a schema: its members, or the answer itself. */
function membersOf(schema: Schema): [string, Schema][] {
  const { properties } = schema
  return properties === undefined ? [[ANSWER, schema]] : Object.entries(properties as Record<string, Schema>)
}

function answerOf(form: FormData, schema: Schema): unknown {
  const values = membersOf(schema).map(([name, { type }]) => {
    const value = form.get(name)
    return [name, type === 'boolean' ? value !== null : isNumber(type) ? Number(value) : value]
  })
  return schema['properties'] === undefined ? values[0]?.[1] : Object.fromEntries(values)
}

function isNumber(type: unknown): boolean {
  return type === 'number' || type === 'integer'
}
