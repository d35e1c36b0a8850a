
// Every page: colours, the place in the navigation.

function startTheme() {
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  const store = { get: () => { try { return localStorage.getItem("letitcook-theme"); } catch { return null; } }, set: (v) => { try { localStorage.setItem("letitcook-theme", v); } catch { /* a file may not store anything */ } } };
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = theme;
    button.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system" : theme}; press to change`);
  };
  let theme = order.includes(store.get()) ? store.get() : "auto";
  apply(theme);
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    store.set(theme);
    apply(theme);
  });
}

function startNavigation() {
  const links = [...document.querySelectorAll(".top .links a")];
  const sections = links.map((link) => document.querySelector(link.hash));
  const follow = () => {
    const here = sections.filter((section) => section.getBoundingClientRect().top < innerHeight * 0.35).length - 1;
    links.forEach((link, n) => (n === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  addEventListener("scroll", follow, { passive: true });
  follow();
}
