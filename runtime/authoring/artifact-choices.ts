import { createHash } from 'node:crypto'
import type { Artifact, Message, Part } from '../../machines/protocol/objects.ts'
import type { MessageContent } from '../../machines/task-events.ts'
import { functionFor, type OptionKinds, textSuchAs, TRUE_OR_FALSE } from '../primitives/options.ts'
import { textOf, type ArtifactReference, namedArtifacts, isReference } from './words.ts'

/** An artifact that a message may mean, without its content, so that a chart can keep it in its context. */
export interface ArtifactChoice extends ArtifactReference {
  /** Its name, or its artifactId if it has no name. */
  readonly name: string
  /** Its description, if that has at most 300 characters. */
  readonly description?: string
  /** The SHA-256 of each of its parts with bytes, by which content in an answer is recognized. */
  readonly digests?: readonly string[]
}

/** The part of the input of work that says which artifact is meant. */
interface ChoosingInput {
  readonly message: Message
  readonly earlierArtifacts: readonly EarlierArtifact[]
}

/** How to find the artifact that a task refines. */
export interface RefiningOptions {
  /** One word for the kind of artifact, such as `picture`. Default `artifact`. */
  readonly what?: string
  /** Makes the text of the question. `isAgain`: the last answer did not choose one. */
  readonly prompt?: (choices: readonly ArtifactChoice[], isAgain: boolean) => string
  /**
   * Allows no artifact: if none is named and there is no earlier one, the result is `undefined` and the task does not
   * ask. Default false.
   */
  readonly optional?: boolean
}

export const REFINING_OPTIONS: OptionKinds<RefiningOptions> = {
  what: textSuchAs("'picture'"),
  prompt: functionFor('a function of the choices that gives the question'),
  optional: TRUE_OR_FALSE
}

/** Maximum number of artifacts that a question lists. Clients may name others too. */
const LISTED = 20

/** Maximum length of a description whose words are matched with an answer, in characters. */
const LONGEST_DESCRIPTION = 300

/**
 * The artifacts that a message may mean which asks for a change: the newest of each name, newest first. Exactly one if
 * the message refers to one, has its content, or names one by its name or a phrase: `the red one`, `the second one`
 * that was made, `the newest`.
 */
export function artifactChoices({ message, earlierArtifacts }: ChoosingInput): ArtifactChoice[] {
  const newest = new Map<string, ArtifactChoice>()
  for (const { taskId, artifact } of earlierArtifacts) {
    const name = artifactNameOf(artifact)
    if (newest.has(name)) continue
    const { artifactId, description = '' } = artifact
    const digests = digestsOf(artifact.parts)
    newest.set(name, {
      artifactId,
      taskId,
      name,
      ...(description !== '' && description.length <= LONGEST_DESCRIPTION && { description }),
      ...(digests.length > 0 && { digests })
    })
  }
  const choices = [...newest.values()]
  const copies = copiesIn(choices, message)
  const named = sole(
    referredTo(choices, message) ??
      (copies.length > 0 ? copies : namedOrOfTasks(choices, message, namedIn(textOf(message), choices)))
  )
  const chosen = named ?? sole(chosenByPhrase(choices, asMade(choices, earlierArtifacts), textOf(message)))
  return chosen ? [chosen] : choices
}

/** The choices in the order in which the first version of each was made. */
function asMade(
  choices: readonly ArtifactChoice[],
  earlierArtifacts: ChoosingInput['earlierArtifacts']
): ArtifactChoice[] {
  const names = [...new Set(earlierArtifacts.map(({ artifact }) => artifactNameOf(artifact)).toReversed())]
  return choices.toSorted((one, other) => names.indexOf(one.name) - names.indexOf(other.name))
}

/** The SHA-256 of each part with bytes, however its base64 is written. */
function digestsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(part =>
    'raw' in part ? [createHash('sha256').update(Buffer.from(part.raw, 'base64')).digest('base64url')] : []
  )
}

/** An artifact's name, or its id if it has no name. */
export function artifactNameOf({
  artifactId,
  name
}: {
  readonly artifactId: string
  readonly name?: string | undefined
}): string {
  return name || artifactId
}

/**
 * Makes the question which artifact is meant: text, and a data part for each artifact, newest first. The metadata of a
 * data part refers to its artifact. A client chooses by sending one of the parts back, or by the artifact's name.
 * `isAgain`: the last answer did not choose one.
 */
export function whichArtifact(
  choices: readonly ArtifactChoice[],
  isAgain: boolean,
  { what = 'artifact', prompt }: RefiningOptions
): MessageContent {
  const text = prompt ? prompt(choices, isAgain) : question(choices, what, isAgain)
  return { parts: [{ text }, ...choices.slice(0, LISTED).map(partOf)] }
}

/**
 * All choices that an answer to `whichArtifact` may mean. In order of precedence:
 *
 * - a reference in the metadata of a part, or in a `data` part
 * - its own bytes in a part, unless the text excludes something; if several have them, the file's name and the text
 *   decide
 * - its name, its name without the extension, or its id in the text
 * - its position in the list: `2`, `the second one`, `the last one`; `the newest` is the first, `the oldest` the last
 * - the task that the message refers to
 * - words of its name and description
 */
export function meantArtifacts(choices: readonly ArtifactChoice[], answer: Message): ArtifactChoice[] {
  const text = textOf(answer)
  const referred = referredTo(choices, answer)
  if (referred) return referred
  const copies = copiesIn(choices, answer)
  const named = choicesByText(choices, answer, text)
  if (copies.length < 2) return copies.length > 0 ? copies : named
  const both = named.filter(choice => copies.includes(choice))
  return both.length > 0 ? both : copies
}

function choicesByText(choices: readonly ArtifactChoice[], answer: Message, text: string): ArtifactChoice[] {
  const named = namedIn(text, choices, !isNegative(text))
  const placed = named.length === 0 ? (chosenByPlace(choices, text) ?? chosenByAge(choices, text)) : undefined
  const meant = placed ? [placed] : namedOrOfTasks(choices, answer, named)
  return meant.length > 0 ? meant : chosenByWords(choices, text)
}

/** The choices that a message's parts refer to; `undefined` if it has no reference. */
function referredTo(choices: readonly ArtifactChoice[], message: Message): ArtifactChoice[] | undefined {
  const references = [
    ...namedArtifacts(message),
    ...message.parts.flatMap(part => ('data' in part && isReference(part.data) ? [part.data] : []))
  ]
  return references.length > 0
    ? choices.filter(choice => references.some(reference => isSame(reference, choice)))
    : undefined
}

/**
 * The choices whose bytes a message has, unless its text excludes something. If several have them, those with the name
 * of its file.
 */
function copiesIn(choices: readonly ArtifactChoice[], message: Message): ArtifactChoice[] {
  const { parts } = message
  const given = new Set(digestsOf(parts))
  if (given.size === 0 || isNegative(textOf(message))) return []
  const copies = choices.filter(({ digests = [] }) => digests.some(digest => given.has(digest)))
  const ofName = copies.filter(({ name }) => parts.some(({ filename }) => filename === name))
  return ofName.length > 0 ? ofName : copies
}

function namedOrOfTasks(
  choices: readonly ArtifactChoice[],
  { referenceTaskIds }: Message,
  named: ArtifactChoice[]
): ArtifactChoice[] {
  return named.length > 0 ? named : choices.filter(({ taskId }) => referenceTaskIds?.includes(taskId))
}

function question(choices: readonly ArtifactChoice[], what: string, isAgain: boolean): string {
  const again = `There is no ${what} of that name`
  if (choices.length === 0) return isAgain ? `${again}.` : `Which ${what} do you mean? There is none here yet.`
  const names = choices.slice(0, LISTED).map(({ name }) => name)
  const list = oneOf(names.length < choices.length ? [...names, 'another'] : names)
  return isAgain ? `${again}, or you named several. Say ${list}.` : `Which ${what} do you mean: ${list}?`
}

function partOf({ artifactId, taskId, name }: ArtifactChoice): Part {
  return { data: { artifactId, taskId, name }, metadata: { artifactId, taskId } }
}

function sole<T>(list: readonly T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined
}

function isSame(one: ArtifactReference, other: ArtifactReference): boolean {
  return one.taskId === other.taskId && one.artifactId === other.artifactId
}

/**
 * The choices whose name or id occurs in a text as whole words, in any case. If one label contains another, only the
 * longer one matches. `orStem`: the name without its extension matches too.
 */
function namedIn(text: string, choices: readonly ArtifactChoice[], orStem = false): ArtifactChoice[] {
  const labelled = choices.map(choice => ({ choice, labels: labelsOf(choice, orStem) }))
  const labels = [...new Set(labelled.flatMap(({ labels }) => labels))]
  const found = new Set<string>()
  let rest = text
  for (const label of labels.toSorted((one, other) => other.length - one.length)) {
    const without = rest.replaceAll(wordsOf(label), '\n')
    if (without !== rest) found.add(label)
    rest = without
  }
  return labelled.filter(({ labels }) => labels.some(label => found.has(label))).map(({ choice }) => choice)
}

function labelsOf({ name, artifactId }: ArtifactChoice, orStem: boolean): string[] {
  const [, stem] = (orStem && /^(.+)\.[^.\s]+$/s.exec(name)) || []
  return [name, artifactId, ...(stem === undefined ? [] : [stem, stem.replaceAll(/[_-]+/g, ' ')])].map(lower)
}

function lower(label: string): string {
  return label.toLowerCase()
}

/** Word boundaries apply only to Latin letters and digits, because other scripts may be written without spaces. */
function wordsOf(label: string): RegExp {
  const literal = label.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  return new RegExp(String.raw`(?<![\p{Script=Latin}\p{N}_])${literal}(?![\p{Script=Latin}\p{N}_])`, 'giu')
}

/**
 * `a`, `a or b`, `a, b, or c`. `Intl.ListFormat` gives the same, but loading its data takes 20 ms at the start of every
 * process.
 */
function oneOf(names: readonly string[]): string {
  return names.length < 3 ? names.join(' or ') : `${names.slice(0, -1).join(', ')}, or ${names.at(-1)}`
}

const PLACES = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']

/**
 * A position in a list: "the second one", "2nd", "the last one". Not "a second", which is a time, and not "the last
 * two".
 */
const ORDINAL = new RegExp(
  String.raw`(?<!\ba )\b(?:(${PLACES.join('|')}|last(?! (?:two|three|few|time)\b))|(\d{1,2})(?:st|nd|rd|th))\b`,
  'giu'
)

const AGE = /\bthe (?:(newest|latest|most recent)|oldest|earliest)\b/iu

/** A phrase that describes an artifact: the words between `the` and a word for an artifact. */
const PHRASE = /\bthe ((?:[\p{L}\p{M}\p{N}]+ ){1,3}?)(?:one|picture|image|file|document|artifact|version)\b/giu

/** An answer that is a number and filler words: "2", "number 2, please". */
const NUMBER =
  /^\W*(?:(?:the|number|no|nr|option|one|picture|artifact|file)\W+){0,2}(\d{1,2})(?:\W+(?:please|thanks))?\W*$/iu

/** Words that express exclusion or doubt. */
const NEGATIVE = /\b(?:not|no|none|neither|nor|never|without|except|other|another|unsure)\b|n['’]t\b/iu

/** Stop words. */
const COMMON = new Set(
  'a an and are as at be but by do for from i in is it its me mean my of on one or please that the these this those to want was we with would you your'.split(
    ' '
  )
)

/** The choice whose position in the list an answer names; `undefined` if it names none, or several. */
function chosenByPlace(choices: readonly ArtifactChoice[], text: string): ArtifactChoice | undefined {
  const number = NUMBER.exec(text)?.[1]
  if (number !== undefined) return choices[Number(number) - 1]
  const [place, ...others] = text.matchAll(ORDINAL)
  if (!place || others.length > 0 || isNegative(text)) return undefined
  const [, word, figure] = place
  // `last` is no place in the list, so -1.
  return choices.at(word === undefined ? Number(figure) - 1 : PLACES.indexOf(word.toLowerCase()))
}

/**
 * The choice that is "the newest" or "the oldest" of a list whose newest comes first; `undefined` if the text says
 * neither.
 */
function chosenByAge(choices: readonly ArtifactChoice[], text: string): ArtifactChoice | undefined {
  const age = isNegative(text) ? null : AGE.exec(text)
  return age ? choices.at(age[1] === undefined ? -1 : 0) : undefined
}

/**
 * The choices that the only phrase of its kind in a message means: "the newest one"; "the second one" and "the last
 * one" in the order in which they were `made`; "the red one" by name and description. Empty without a phrase, with
 * several, or if the message excludes something.
 */
function chosenByPhrase(
  choices: readonly ArtifactChoice[],
  made: readonly ArtifactChoice[],
  text: string
): ArtifactChoice[] {
  const [phrase, ...others] = text.matchAll(PHRASE)
  if (!phrase || others.length > 0 || isNegative(text)) return []
  const [whole, words = ''] = phrase
  const chosen = chosenByAge(choices, whole) ?? chosenByPlace(made, whole)
  return chosen ? [chosen] : chosenByWords(choices, words)
}

/** The choices whose name and description share the most words with an answer; empty if all share equally many. */
function chosenByWords(choices: readonly ArtifactChoice[], text: string): ArtifactChoice[] {
  if (isNegative(text)) return []
  const words = wordsIn(text)
  const scores = choices.map(
    ({ name, description = '' }) => [...wordsIn(`${name} ${description}`)].filter(word => words.has(word)).length
  )
  const most = Math.max(...scores)
  const best = choices.filter((_, i) => scores[i] === most)
  return best.length < choices.length ? best : []
}

/** Whether an answer excludes something or doubts, so that a name in it may not be the choice. */
function isNegative(text: string): boolean {
  return NEGATIVE.test(text)
}

function wordsIn(text: string): Set<string> {
  return new Set(
    text
      .toLowerCase()
      .match(/[\p{L}\p{M}]+/gu)
      ?.filter(word => !COMMON.has(word))
  )
}

/** An artifact of another task of the same caller. */
export interface EarlierArtifact {
  readonly taskId: string
  readonly artifact: Artifact
}
