import type { ArtifactChoice } from './artifact-choices.ts'

const PLACES = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']

/** A position in a list: "the second one", "2nd", "the last one". Not "a second", which is a time, and not "the last two". */
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
export function chosenByPlace(choices: readonly ArtifactChoice[], text: string): ArtifactChoice | undefined {
  const number = NUMBER.exec(text)?.[1]
  if (number !== undefined) return choices[Number(number) - 1]
  const [place, ...others] = text.matchAll(ORDINAL)
  if (!place || others.length > 0 || isNegative(text)) return undefined
  const [, word, figure] = place
  // `last` is no place in the list, so -1.
  return choices.at(word === undefined ? Number(figure) - 1 : PLACES.indexOf(word.toLowerCase()))
}

/** The choice that is "the newest" or "the oldest" of a list whose newest comes first; `undefined` if the text says neither. */
export function chosenByAge(choices: readonly ArtifactChoice[], text: string): ArtifactChoice | undefined {
  const age = isNegative(text) ? null : AGE.exec(text)
  return age ? choices.at(age[1] === undefined ? -1 : 0) : undefined
}

/**
 * The choices that the only phrase of its kind in a message means: "the newest one"; "the second one" and "the last one" in the order in which they
 * were `made`; "the red one" by name and description. Empty without a phrase, with several, or if the message
 * excludes something.
 */
export function chosenByPhrase(
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
export function chosenByWords(choices: readonly ArtifactChoice[], text: string): ArtifactChoice[] {
  if (isNegative(text)) return []
  const said = wordsIn(text)
  const scores = choices.map(
    ({ name, description = '' }) => [...wordsIn(`${name} ${description}`)].filter(word => said.has(word)).length
  )
  const most = Math.max(...scores)
  const best = choices.filter((_, i) => scores[i] === most)
  return best.length < choices.length ? best : []
}

/** Whether an answer excludes something or doubts, so that a name in it may not be the choice. */
export function isNegative(text: string): boolean {
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
