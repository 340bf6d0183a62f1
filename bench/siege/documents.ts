import { nested } from '../../test/fixtures/protocol/bad-input.ts'

let lastMessage = 0

/** Parameters of SendMessage with one part of text, and what else the message has. */
export function say(text: string, more = '', beside = ''): string {
  lastMessage += 1
  return `{"message":{"messageId":"m-${process.pid}-${lastMessage}","role":"ROLE_USER","parts":[{"text":${JSON.stringify(text)}}]${more}}${beside}}`
}

/** The same, answered as soon as the message is taken. */
export function sayAtOnce(text: string, more = ''): string {
  return say(text, more, ',"configuration":{"returnImmediately":true}')
}

/** So many copies of a text, separated by commas. */
export function times(count: number, text: string): string {
  return `${text},`.repeat(count).slice(0, -1)
}

/** About 3 MB of a message's data: long strings in many members. */
export const THREE_MEGABYTES = `,"metadata":{"filler":[${times(48, `"${'0123456789abcdef'.repeat(4000)}"`)}]}`

/** Texts of parameters of SendMessage that are large, wide or deep: each under 4 MiB, and most of them refused. */
export const COSTLY: Readonly<Record<string, () => string>> = {
  'references to 900,000 tasks': () => say('hello', `,"referenceTaskIds":[${times(900_000, '"x"')}]`),
  '1,300,000 empty arrays': () => say('hello', `,"metadata":{"a":[${times(1_300_000, '[]')}]}`),
  '1,300,000 empty objects': () => say('hello', `,"metadata":{"a":[${times(1_300_000, '{}')}]}`),
  '1,900,000 numbers': () => say('hello', `,"metadata":{"a":[${times(1_900_000, '1')}]}`),
  '190,000 numbers, which are allowed': () => say('hello', `,"metadata":{"a":[${times(190_000, '1e-300')}]}`),
  '190,000 arrays, which are allowed': () => say('echo', `,"metadata":{"a":[${times(190_000, '[]')}]}`),
  '300,000 members': () =>
    say('hello', `,"metadata":{${Array.from({ length: 300_000 }, (_, i) => `"k${i}":0`).join(',')}}`),
  '9,900 members, which are allowed': () =>
    say('hello', `,"metadata":{${Array.from({ length: 9_900 }, (_, i) => `"k${i}":0`).join(',')}}`),
  '400,000 parts': () => `{"message":{"messageId":"m","role":"ROLE_USER","parts":[${times(250_000, '{"text":"a"}')}]}}`,
  '200,000 extensions': () => say('hello', `,"extensions":[${times(200_000, '"urn:x"')}]`),
  '500,000 accepted output modes': () =>
    say('hello', '', `,"configuration":{"acceptedOutputModes":[${times(500_000, '"a/b"')}]}`),
  'a text of 4 MB': () => say('a'.repeat(4_000_000)),
  'a text of escapes': () =>
    `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"${'\\u0001'.repeat(600_000)}"}]}}`,
  'bytes of 4 MB': () =>
    `{"message":{"messageId":"m-${(lastMessage += 1)}","role":"ROLE_USER","parts":[{"raw":"${'AAAA'.repeat(1_000_000)}"}]}}`,
  'bytes of 4 MB that are not base64': () =>
    `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"${'AAAA'.repeat(1_000_000)}!"}]}}`,
  'data nested 60 deep, 3,000 times': () => say('hello', `,"metadata":{"a":[${times(3_000, nested(58, '1'))}]}`),
  'data nested 2,000,000 deep': () => say('hello', `,"metadata":{"a":${nested(2_000_000)}}`),
  'a number of 4,000,000 digits': () => say('hello', `,"metadata":{"a":${'9'.repeat(4_000_000)}}`),
  'a name of 4 MB': () => say('hello', `,"metadata":{"${'n'.repeat(4_000_000)}":1}`),
  'one name 500,000 times': () => say('hello', `,"metadata":{${times(500_000, '"a":1')}}`),
  'numbers as names': () =>
    say('hello', `,"metadata":{${Array.from({ length: 9_000 }, (_, i) => `"${i * 400_000}":0`).join(',')}}`),
  'an id of 4 MB': () => `{"id":"${'i'.repeat(4_000_000)}"}`
}
