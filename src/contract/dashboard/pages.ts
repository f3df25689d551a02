// Lists in pages.
import Type from 'typebox'
import { TextOrNull } from '../fields.ts'
import { PAGE_ITEMS } from '../limits.ts'

export const Cursor = Type.Optional(
  Type.String({
    pattern: '^[a-z]{3}_[0-9a-z]{1,64}$',
    'x-rule': 'must be `next` of the previous page',
  }),
)
export const Limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: PAGE_ITEMS.max, default: PAGE_ITEMS.default }),
)
export const NextPage = TextOrNull
