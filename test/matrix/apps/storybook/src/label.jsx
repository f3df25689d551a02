export const Label = () => <p>first</p>
