type Values<T, Names extends (keyof T)[]> = { [Index in keyof Names]: T[Names[Index]] }

/** These members of each object: one name gives the values, several give lists of them. */
export function pluck<List extends readonly object[], Name extends keyof List[number]>(
  objects: List,
  name: Name,
): List[number][Name][]
export function pluck<List extends readonly object[], Names extends (keyof List[number])[]>(
  objects: List,
  ...names: Names
): Values<List[number], Names>[]
export function pluck(objects: readonly Record<PropertyKey, unknown>[], ...names: PropertyKey[]): unknown[] {
  const [first = ''] = names
  return objects.map((each) => (names.length === 1 ? each[first] : names.map((name) => each[name])))
}
