document.querySelector('p').textContent = 'first'
import.meta.hot?.accept()
