// A page of a list, for keyset pagination.

export interface Page {
  /** The id, or value of the sorting column, of the row before the page. */
  after?: string | undefined
  limit: number
}
