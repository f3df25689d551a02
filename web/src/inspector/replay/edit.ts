// An edited request, and what of it is sent: only what was changed, so that the rest stays as it was
// recorded.
import {
  type Exchange,
  FRAMING_HEADERS,
  type ReplayHeader,
  type ReplayRequest,
} from '../../../../src/inspector/api.ts'

export interface HeaderField {
  /** The key of the field in the form. */
  readonly key: number
  readonly name: string
  readonly value: string
  /** Its value is masked, and sent as the header with this index was recorded. */
  readonly recorded?: number
}

export interface EditedRequest {
  readonly method: string
  readonly path: string
  readonly headers: readonly HeaderField[]
  /** Undefined: the recorded body. */
  readonly body: string | undefined
}

export const toEditable = ({ method, path, request }: Exchange): EditedRequest => ({
  method,
  path,
  headers: request.headers
    .map(({ name, value, masked }, key) => ({ key, name, value, ...(masked && { recorded: key }) }))
    .filter(({ name }) => !FRAMING_HEADERS.has(name.toLowerCase())),
  body: undefined,
})

/** `recordedBody`: the text that was edited, undefined if it was none. */
export function toReplayRequest(
  exchange: Exchange,
  edited: EditedRequest,
  recordedBody: string | undefined,
): ReplayRequest {
  const { method, path, headers } = toEditable(exchange)
  const isBodyEdited = edited.body !== undefined && edited.body !== recordedBody
  const kept = edited.headers.filter(({ name }) => name.trim() !== '' && !(isBodyEdited && isEncoding(name)))
  const isSame = JSON.stringify(kept) === JSON.stringify(headers)
  return {
    ...(edited.method !== method && { method: edited.method }),
    ...(edited.path !== path && { path: edited.path }),
    ...(!isSame && { headers: kept.map(toReplayHeader) }),
    ...(isBodyEdited && { body: { text: restoreLineBreaks(edited.body ?? '', recordedBody) } }),
  }
}

/** The edited text is sent without an encoding. */
const isEncoding = (name: string) => name.toLowerCase() === 'content-encoding'

const toReplayHeader = ({ name, value, recorded }: HeaderField): ReplayHeader =>
  recorded === undefined ? { name: name.trim(), value: value.trim() } : { name: name.trim(), recorded }

/** Text fields have `\n` only, but the parts of a multipart form need `\r\n`. */
function restoreLineBreaks(text: string, recorded: string | undefined): string {
  const hasOnlyCrlf = recorded !== undefined && /\r\n/.test(recorded) && !/(?<!\r)\n/.test(recorded)
  return hasOnlyCrlf ? text.replaceAll(/\r?\n/g, '\r\n') : text
}
