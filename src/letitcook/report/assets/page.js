
// The page of a sweep: the filter of the tables, the player, the plane.

function startFilter() {
  const box = document.getElementById("only-differing");
  box.addEventListener("change", () => document.getElementById("tables").classList.toggle("only-differing", box.checked));
}

const DATA = JSON.parse(document.getElementById("data").textContent);
startTheme();
startNavigation();
startFilter();
startPlayer(DATA);
startPlane(DATA);
